package table

import (
	"fmt"
	"strconv"
	"time"
)

// Clock writes a time in the local zone, with as much of the date as it needs.
func Clock(cell string, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, cell)
	if err != nil {
		return cell
	}
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05.000")
	case t.Year() == now.Year():
		return t.Format("Jan 02 15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// Ago returns the age of a time.
func Ago(cell string, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, cell)
	if err != nil {
		return cell
	}
	if age := now.Sub(t).Truncate(time.Second); age > 0 {
		return Shortly(age) + " ago"
	}
	return "now"
}

// Lasting writes seconds as a duration, and nothing for 0.
func Lasting(cell string, _ time.Time) string {
	seconds, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return cell
	}
	if seconds == 0 {
		return ""
	}
	return Shortly(time.Duration(seconds * float64(time.Second)))
}

// Shortly writes the two largest units of a duration.
func Shortly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d > 0 && d < 100*time.Millisecond:
		return "<0.1s"
	case d < time.Minute:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// Percent writes a ratio, rounded down.
func Percent(cell string, _ time.Time) string {
	ratio, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return cell
	}
	return strconv.FormatFloat(float64(int64(ratio*100_000))/1000, 'f', 3, 64) + "%"
}
