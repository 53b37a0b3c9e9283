package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/internal/duration"
)

// now is the clock. Tests replace it.
var now = time.Now

// timeForms lists the formats of parseTime.
const timeForms = "RFC 3339, a time of today: 15:04, a day: 2026-01-02, or a duration ago: 90s, 1h, 7d"

// localTimes are the formats of tables, and shorter ones.
var localTimes = []string{
	time.TimeOnly, "15:04", "Jan 02 15:04:05", "Jan 02 15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04",
}

// parseTime reads RFC 3339, a time in the zone of now, or a duration before now.
func parseTime(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if age, ok := parseAgo(text); ok {
		return timestamppb.New(now.Add(-age)), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return timestamppb.New(t), nil
	}
	if t, err := time.Parse("2006-01-02T15:04Z07:00", text); err == nil { // RFC 3339 without seconds
		return timestamppb.New(t), nil
	}
	if t, ok := parseLocal(text, now); ok {
		return timestamppb.New(t), nil
	}
	return nil, usageError{fmt.Errorf("--%s %q: want a time (2026-01-02T15:04:05Z, 15:04 of today, 2026-01-02) or a duration ago (90s, 1h30m, 7d)", flag, text)}
}

// parseLocal reads a time in the zone of now. The missing parts of the date are those
// of now.
func parseLocal(text string, now time.Time) (time.Time, bool) {
	for _, layout := range localTimes {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		if strings.HasPrefix(layout, "2006") {
			return t, true
		}
		month, day := t.Month(), t.Day()
		if strings.HasPrefix(layout, "15") {
			month, day = now.Month(), now.Day()
		}
		return time.Date(now.Year(), month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location()), true
	}
	return time.Time{}, false
}

// parsePeriod reads --since and --until, and checks their order.
func parsePeriod(since, until string, now time.Time) (start, end *timestamppb.Timestamp, err error) {
	if start, err = parseTime("since", since, now); err != nil {
		return nil, nil, err
	}
	if end, err = parseTime("until", until, now); err != nil {
		return nil, nil, err
	}
	if start != nil && end != nil && start.AsTime().After(end.AsTime()) {
		return nil, nil, usageError{fmt.Errorf("--since %s is after --until %s: exchange the two", since, until)}
	}
	return start, end, nil
}

// parseAgo reads a duration, such as 90s or 7d.
func parseAgo(text string) (time.Duration, bool) {
	age, err := duration.Parse(text)
	return age, err == nil
}
