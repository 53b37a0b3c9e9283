package main

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// look is how tables show a column. Cells hold what csv shows; a table says it
// the way people do.
type look struct {
	title string                                  // the column's name where empty
	text  func(cell string, now time.Time) string // the cell as it is where nil
	style func(cell string) style                 // plain where nil

	reserve  string // a text that it is always wide enough for
	optional bool   // not shown where there are no rows at all
	never    bool   // for programs, and too wide for people
}

// looks are the columns that tables show in a way of their own, by name.
var looks = map[string]look{
	"time":                {text: clock},
	"since":               {text: ago},
	"until":               {text: clock},
	"last_report":         {text: ago},
	"last_ack":            {text: ago},
	"event":               {reserve: "transition"},
	"health":              {style: healthStyle, reserve: longestHealth},
	"from":                {style: healthStyle, reserve: longestHealth},
	"to":                  {style: healthStyle, reserve: longestHealth},
	"published":           {style: healthStyle, optional: true},
	"published_reason":    {optional: true},
	"voted":               {style: healthStyle, optional: true},
	"mode":                {text: unlessPublished, style: always(yellow), optional: true},
	"overridden":          {text: unlessNone, style: always(yellow), optional: true},
	"quarantined":         {style: always(yellow), optional: true},
	"no_endpoints_reason": {style: always(yellow), optional: true},
	"connected":           {style: badIfNot},
	"trusted":             {style: badIfNot},
	"distrust_reason":     {optional: true},
	"operator":            {text: unlessDistrusted, style: always(yellow), optional: true},
	"blind_reason":        {style: always(yellow), optional: true},
	"share":               {never: true},
	"plan_digest":         {never: true},
	"last_error":          {style: always(red), optional: true},
	"polls_by":            {optional: true},
	"last_poll":           {text: ago, optional: true},
	"version_given":       {never: true},
	"version_held":        {never: true},
	"unasked":             {text: unlessNone, style: always(red), optional: true},
	"type":                {text: service},
	"transitions":         {title: "changes"},
	"healthy_ratio":       {title: "available", text: percent},
	"healthy_seconds":     {title: "healthy", text: lasting},
	"unhealthy_seconds":   {title: "unhealthy", text: lasting},
	"unknown_seconds":     {title: "unknown", text: lasting},
	"degraded_seconds":    {title: "degraded", text: lasting},
	"draining_seconds":    {title: "draining", text: lasting},
}

// longestHealth takes the most room of all states of health.
const longestHealth = "UNHEALTHY"

// style is a colour, as terminals are told of it.
type style string

const (
	plain  style = ""
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	reset        = "\x1b[0m"
)

func always(s style) func(string) style { return func(string) style { return s } }

func healthStyle(health string) style {
	switch health {
	case "HEALTHY":
		return green
	case "UNHEALTHY", "TIMEOUT":
		return red
	case "DEGRADED", "DRAINING":
		return yellow
	}
	return plain
}

func badIfNot(cell string) style {
	if cell == "false" {
		return red
	}
	return plain
}

// unlessPublished shows a mode that is out of the ordinary.
func unlessPublished(mode string, _ time.Time) string {
	if mode == "PUBLISH" {
		return ""
	}
	return mode
}

// unlessDistrusted shows what an operator says of a checker where it is not
// shown as the reason for distrust.
func unlessDistrusted(word string, _ time.Time) string {
	if strings.HasPrefix(word, "distrusted ") {
		return ""
	}
	return word
}

// unlessNone shows a number that is not 0.
func unlessNone(number string, _ time.Time) string {
	if number == "0" {
		return ""
	}
	return number
}

// service shows a type of resource as the service that brings it.
func service(resource string, _ time.Time) string {
	switch resource {
	case "ClusterLoadAssignment":
		return "EDS"
	case "Cluster":
		return "CDS"
	case "HealthCheckSpecifier":
		return "HDS"
	}
	return resource
}

// percent shows a ratio, never better than it is.
func percent(cell string, _ time.Time) string {
	ratio, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return cell
	}
	return strconv.FormatFloat(float64(int64(ratio*100_000))/1000, 'f', 3, 64) + "%"
}

// lineBreak stands between the lines of a cell. It is in no text that comes from
// a coordinator, which is UTF-8.
const lineBreak = "\xff"

// lines gives the lines of a cell, each printable.
func lines(cell string) string {
	if !strings.Contains(cell, lineBreak) {
		return printable(cell)
	}
	all := strings.Split(cell, lineBreak)
	for i, line := range all {
		all[i] = printable(line)
	}
	return strings.Join(all, "\n")
}

// printable shows what would move the cursor, turn the direction of writing, or
// more, as an escape.
func printable(cell string) string {
	const joiner = '\u200d' // of emoji
	control := func(r rune) bool { return !unicode.IsPrint(r) && r != joiner }
	if strings.IndexFunc(cell, control) < 0 {
		return cell
	}
	var out strings.Builder
	for _, r := range cell {
		if control(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
