package duration

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
)

// Forms lists examples, for errors and help.
const Forms = "30d, 1h30m, 0.5s or 500ms"

// Max is the longest duration.
const Max = time.Duration(math.MaxInt64)

// maxLength bounds the length of a text.
const maxLength = 100

var (
	part   = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)`)
	number = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)
)

// hours are the lengths of units that Go does not know.
var hours = map[string]time.Duration{"d": 24, "w": 7 * 24}

var errTooLong = fmt.Errorf("is too long: at most %dd, or 292 years", Max/(24*time.Hour))

// Parse reads a duration.
func Parse(text string) (time.Duration, error) {
	switch {
	case text == "":
		return 0, errors.New("is empty: write a duration as " + Forms)
	case text == "0":
		return 0, nil
	case len(text) > maxLength:
		return 0, errors.New("has too many characters: write a duration as " + Forms)
	case number.MatchString(text):
		return 0, fmt.Errorf("has no unit: write %ss for seconds, or another of w, d, h, m, s, ms, us, ns", text)
	case text[0] == '-':
		return 0, errors.New("is negative: leave out the -")
	}
	var sum time.Duration
	for rest := strings.TrimPrefix(text, "+"); ; {
		found := part.FindStringSubmatch(rest)
		if found == nil {
			return 0, errors.New("is not a duration: write numbers with their units, as " + Forms)
		}
		length, err := times(found[1], found[2])
		if err != nil {
			return 0, err
		}
		if sum += length; sum < 0 {
			return 0, errTooLong
		}
		if rest = rest[len(found[0]):]; rest == "" {
			return sum, nil
		}
	}
}

// times returns count units.
func times(count, unit string) (time.Duration, error) {
	in, more := unit, time.Duration(1)
	if h, ok := hours[unit]; ok {
		in, more = "h", h
	}
	switch in {
	case "h", "m", "s", "ms", "us", "µs", "μs", "ns":
	case "":
		return 0, fmt.Errorf("has no unit after %s: add one of w, d, h, m, s, ms, us, ns", count)
	default:
		return 0, fmt.Errorf("has an unknown unit %q: use w, d, h, m, s, ms, us or ns", unit)
	}
	length, err := time.ParseDuration(count + in)
	if err != nil || length > Max/more {
		return 0, errTooLong // the form is right, so only this can be wrong
	}
	return length * more, nil
}
