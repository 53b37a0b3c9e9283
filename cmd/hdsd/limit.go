package main

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"
)

// For each event: the burst of lines, and the lines per second in the long run.
const (
	lineBurst = 200
	lineRate  = 5
)

// limiter passes on a bounded number of lines for each event, and counts the rest, so that no
// peer can fill the disk by repeating something. Event names are the program's own, so there are
// few.
type limiter struct {
	w   io.Writer
	now func() time.Time

	mu     sync.Mutex // guards the fields below, and writing
	events map[string]*allowance
}

// allowance is the allowance of one event.
type allowance struct {
	*rate.Limiter
	leftOut int
}

func newLimiter(w io.Writer, now func() time.Time) *limiter {
	return &limiter{w: w, now: now, events: map[string]*allowance{}}
}

// Write implements io.Writer for one line of JSON.
func (l *limiter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for name, allowed := range l.events {
		if allowed.leftOut > 0 && allowed.AllowN(now, 1) {
			l.tell(name, allowed.leftOut)
			allowed.leftOut = 0
		}
	}
	name := eventOf(line)
	allowed := l.events[name]
	if allowed == nil {
		allowed = &allowance{Limiter: rate.NewLimiter(lineRate, lineBurst)}
		l.events[name] = allowed
	}
	if !allowed.AllowN(now, 1) {
		allowed.leftOut++
		return len(line), nil
	}
	return l.w.Write(line)
}

// tell logs the number of missing lines of an event.
func (l *limiter) tell(name string, count int) {
	log := zerolog.New(l.w).With().Timestamp().Logger()
	log.Warn().Str("event", "lines_left_out").Str("of", name).Int("count", count).
		Msg("too many lines of one event: some were left out")
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
