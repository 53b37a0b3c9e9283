package main

import (
	"strings"
	"time"

	"hdsd/internal/table"
)

// looks are the columns with a format of their own in tables, by name.
var looks = map[string]table.Look{
	"time":                {Text: table.Clock},
	"since":               {Text: table.Ago},
	"until":               {Text: table.Clock},
	"last_report":         {Text: table.Ago, Spare: 2},
	"last_ack":            {Text: table.Ago, Spare: 2},
	"event":               {Reserve: "transition", Spare: 1},
	"health":              {Style: healthStyle, Reserve: longestHealth},
	"held":                {Style: always(table.Yellow), Optional: true},
	"held_endpoints":      {Title: "held", Text: unlessNone, Style: always(table.Yellow), Optional: true},
	"exclusions":          {Title: "not checked", Text: unlessNone, Style: always(table.Yellow), Optional: true},
	"draining":            {Text: unlessNone, Optional: true},
	"locality":            {Spare: 3},
	"hostname":            {Optional: true},
	"source":              {Spare: 4},
	"version":             {Spare: 4},
	"votes":               {Spare: 2, Style: gapStyle},
	"start":               {Text: table.Clock},
	"end":                 {Text: table.Clock, Spare: 1},
	"held_since":          {Text: table.Ago, Optional: true},
	"from":                {Style: healthStyle, Reserve: longestHealth},
	"to":                  {Style: healthStyle, Reserve: longestHealth},
	"published":           {Style: healthStyle, Optional: true},
	"published_reason":    {Optional: true},
	"voted":               {Style: healthStyle, Optional: true, Spare: 1},
	"mode":                {Text: unlessPublished, Style: always(table.Yellow), Optional: true},
	"overridden":          {Text: unlessNone, Style: always(table.Yellow), Optional: true},
	"quarantined":         {Style: always(table.Yellow), Optional: true},
	"rejected_reason":     {Title: "latest version refused", Style: always(table.Yellow), Optional: true},
	"problem":             {Style: always(table.Red), Optional: true},
	"no_endpoints_reason": {Style: always(table.Yellow), Optional: true},
	"connected":           {Style: badIfNot, Spare: 1},
	"trusted":             {Style: badIfNot},
	"distrust_reason":     {Optional: true},
	"operator":            {Text: unlessDistrusted, Style: always(table.Yellow), Optional: true},
	"lost_since":          {Title: "lost", Text: table.Ago, Style: always(table.Red), Optional: true},
	"lost_reason":         {Style: always(table.Red), Optional: true},
	"blind_reason":        {Style: always(table.Yellow), Optional: true},
	"probation":           {Style: always(table.Yellow), Optional: true},
	"share":               {Hidden: true},
	"plan_digest":         {Hidden: true},
	"last_error":          {Style: always(table.Red), Optional: true},
	"polls_by":            {Optional: true},
	"last_poll":           {Text: table.Ago, Optional: true},
	"version_given":       {Hidden: true},
	"version_held":        {Hidden: true},
	"unasked":             {Text: unlessNone, Style: always(table.Red), Optional: true},
	"type":                {Text: service},
	"transitions":         {Title: "changes"},
	"cluster":             {Optional: true},
	"cluster_version":     {Title: "version", Optional: true},
	"address":             {Optional: true},
	"checker":             {Optional: true},
	"replica":             {Optional: true, Spare: 1},
	"leader":              {Style: goodIfTrue},
	"lag_millis":          {Title: "lag", Text: millis, Spare: 1},
	"data_planes":         {Title: "planes"},
	"budget_left":         {Title: "budget left", Text: table.Percent, Style: badIfOverdrawn, Optional: true},
	"healthy_ratio":       {Title: "available", Text: table.Percent},
	"healthy_seconds":     {Title: "healthy", Text: table.Lasting},
	"longest_seconds":     {Title: "longest", Text: table.Lasting},
	"down_since":          {Title: "down since", Text: table.Ago, Optional: true, Spare: 1},
	"failing_since":       {Text: table.Ago, Style: always(table.Red), Optional: true},
	"last_success":        {Text: table.Ago, Optional: true, Spare: 2},
	"against_ratio":       {Title: "share", Text: table.Percent},
	"unhealthy_seconds":   {Title: "unhealthy", Text: table.Lasting},
	"unknown_seconds":     {Title: "unknown", Text: table.Lasting},
	"degraded_seconds":    {Title: "degraded", Text: table.Lasting},
	"draining_seconds":    {Title: "draining", Text: table.Lasting},
}

// longestHealth is the longest health, for the column's width.
const longestHealth = "UNHEALTHY"

func always(s table.Style) func(string) table.Style { return func(string) table.Style { return s } }

func healthStyle(health string) table.Style {
	switch health {
	case "HEALTHY":
		return table.Green
	case "UNHEALTHY", "TIMEOUT":
		return table.Red
	case "DEGRADED", "DRAINING":
		return table.Yellow
	}
	return table.Plain
}

func gapStyle(cell string) table.Style {
	if cell == "GAP" {
		return table.Yellow
	}
	return table.Plain
}

func badIfNot(cell string) table.Style {
	if cell == "false" {
		return table.Red
	}
	return table.Plain
}

func goodIfTrue(cell string) table.Style {
	if cell == "true" {
		return table.Green
	}
	return table.Plain
}

func badIfOverdrawn(cell string) table.Style {
	if strings.HasPrefix(cell, "-") {
		return table.Red
	}
	return table.Plain
}

// unlessPublished formats a mode other than the default.
func unlessPublished(mode string, _ time.Time) string {
	if mode == "PUBLISH" {
		return ""
	}
	return mode
}

// unlessDistrusted formats an operator's trust, unless it is the reason for distrust.
func unlessDistrusted(word string, _ time.Time) string {
	if strings.HasPrefix(word, "distrusted ") {
		return ""
	}
	return word
}

// unlessNone formats a number other than 0.
// millis formats a number of milliseconds.
func millis(number string, _ time.Time) string { return number + " ms" }

func unlessNone(number string, _ time.Time) string {
	if number == "0" {
		return ""
	}
	return number
}

// service formats a type of resource as the name of its discovery service.
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
