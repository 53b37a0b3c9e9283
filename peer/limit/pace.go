package limit

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Pace bounds the log lines for one kind of event. The zero value is ready to use.
type Pace struct {
	Interval time.Duration // the least time between two lines; default: 1 s

	mu         sync.Mutex
	last       time.Time
	suppressed uint64
}

// Next reports whether to log an event, and the number of events suppressed before it.
func (p *Pace) Next(now time.Time) (suppressed uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) < max(p.Interval, time.Second) {
		p.suppressed++
		return 0, false
	}
	suppressed, p.suppressed, p.last = p.suppressed, 0, now
	return suppressed, true
}

// Warn begins a line about an event, which ends with the number of suppressed ones (more). It
// returns nil for a suppressed event, to which zerolog adds nothing.
func (p *Pace) Warn(now time.Time, log *zerolog.Logger, event string) *zerolog.Event {
	suppressed, ok := p.Next(now)
	if !ok {
		return nil
	}
	counting := log.Hook(zerolog.HookFunc(func(line *zerolog.Event, _ zerolog.Level, _ string) { line.Uint64("more", suppressed) }))
	return counting.Warn().Str("event", event)
}
