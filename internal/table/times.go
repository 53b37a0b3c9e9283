package table

import (
	"fmt"
	"strconv"
	"time"
)

// Clock writes a time in the local zone, with as much of the date as it needs.
func Clock(cell string, now time.Time) string {
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

// Ago writes how long ago a time was.
func Ago(cell string, now time.Time) string {
	at, err := time.Parse(time.RFC3339Nano, cell)
	if err != nil {
		return cell
	}
	if past := now.Sub(at).Truncate(time.Second); past > 0 {
		return Shortly(past) + " ago"
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
