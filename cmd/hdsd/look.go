package main

import (
	"fmt"
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
}

// looks are the columns that tables show in a way of their own, by name.
var looks = map[string]look{
	"time":              {text: clock},
	"since":             {text: ago},
	"until":             {text: clock},
	"last_report":       {text: ago},
	"last_ack":          {text: ago},
	"health":            {style: healthStyle},
	"from":              {style: healthStyle},
	"to":                {style: healthStyle},
	"published":         {style: healthStyle},
	"voted":             {style: healthStyle},
	"mode":              {text: unlessPublished, style: func(string) style { return yellow }},
	"quarantined":       {style: func(string) style { return yellow }},
	"connected":         {style: badIfNot},
	"trusted":           {style: badIfNot},
	"last_error":        {style: func(string) style { return red }},
	"type":              {text: service},
	"transitions":       {title: "changes"},
	"healthy_ratio":     {title: "available", text: percent},
	"healthy_seconds":   {title: "healthy", text: lasting},
	"unhealthy_seconds": {title: "unhealthy", text: lasting},
	"unknown_seconds":   {title: "unknown", text: lasting},
	"degraded_seconds":  {title: "degraded", text: lasting},
	"draining_seconds":  {title: "draining", text: lasting},
}

// style is a colour, as terminals are told of it.
type style string

const (
	plain  style = ""
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	reset        = "\x1b[0m"
)

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

// clock shows a time as clocks on the wall do, with as much of the date as it
// needs.
func clock(cell string, now time.Time) string {
	at, err := time.Parse(time.RFC3339Nano, cell)
	if err != nil {
		return cell
	}
	at, now = at.Local(), now.Local()
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04:05.000")
	case at.Year() == now.Year():
		return at.Format("Jan 02 15:04:05.000")
	}
	return at.Format("2006-01-02 15:04:05.000")
}

// ago shows how long ago a time was.
func ago(cell string, now time.Time) string {
	at, err := time.Parse(time.RFC3339Nano, cell)
	if err != nil {
		return cell
	}
	if past := now.Sub(at).Truncate(time.Second); past > 0 {
		return shortly(past) + " ago"
	}
	return "now"
}

// lasting shows seconds as a duration, and none at all where there are none.
func lasting(cell string, _ time.Time) string {
	seconds, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return cell
	}
	if seconds == 0 {
		return ""
	}
	return shortly(time.Duration(seconds * float64(time.Second)))
}

// shortly shows the two largest units of a duration.
func shortly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// percent shows a ratio, never better than it is.
func percent(cell string, _ time.Time) string {
	ratio, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return cell
	}
	return strconv.FormatFloat(float64(int64(ratio*100_000))/1000, 'f', 3, 64) + "%"
}

// printable shows what would move the cursor, turn the direction of writing, or
// more, as an escape.
func printable(cell string) string {
	const joiner = '\u200d' // of emoji
	control := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != joiner }
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
