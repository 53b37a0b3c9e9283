package main

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// For each event: the burst of lines, and the lines a second in the long run.
const (
	lineBurst = 200
	lineRate  = 5
)

// limiter passes on a bounded number of lines for each event, and counts the rest. So
// no peer can fill the disk by repeating something. Event names are the program's own,
// so there are few.
type limiter struct {
	to  io.Writer
	now func() time.Time

	mu     sync.Mutex // guards the fields below, and writing
	events map[string]*allowance
}

// allowance is the remaining burst of one event.
type allowance struct {
	lines   float64
	at      time.Time
	leftOut int
}

func newLimiter(to io.Writer, now func() time.Time) *limiter {
	return &limiter{to: to, now: now, events: map[string]*allowance{}}
}

// Write implements io.Writer for one line of JSON.
func (l *limiter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for name, of := range l.events {
		if of.leftOut > 0 && of.take(now) {
			l.tell(name, of.leftOut)
			of.leftOut = 0
		}
	}
	name := eventOf(line)
	of := l.events[name]
	if of == nil {
		of = &allowance{lines: lineBurst, at: now}
		l.events[name] = of
	}
	if !of.take(now) {
		of.leftOut++
		return len(line), nil
	}
	return l.to.Write(line)
}

// tell logs how many lines of an event are missing.
func (l *limiter) tell(name string, count int) {
	log := zerolog.New(l.to).With().Timestamp().Logger()
	log.Warn().Str("event", "lines_left_out").Str("of", name).Int("count", count).
		Msg("too many lines of one event: some were left out")
}

// take reports whether one more line may be written.
func (a *allowance) take(now time.Time) bool {
	a.lines = min(lineBurst, a.lines+lineRate*max(0, now.Sub(a.at).Seconds()))
	a.at = now
	if a.lines < 1 {
		return false
	}
	a.lines--
	return true
}

// eventOf returns the event name of a line, right after its level.
func eventOf(line []byte) string {
	_, rest, found := bytes.Cut(line, []byte(`"event":"`))
	name, _, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return ""
	}
	return string(name)
}
