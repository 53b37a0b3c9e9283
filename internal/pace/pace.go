package pace

import (
	"sync"
	"time"
)

const pause = time.Second

// Pace is the pace of one kind of event. The zero value is ready to use.
type Pace struct {
	mu   sync.Mutex
	last time.Time
	more uint64
}

// Next tells whether to log an event, and how many were not logged before it.
func (p *Pace) Next(now time.Time) (more uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) < pause {
		p.more++
		return 0, false
	}
	more, p.more, p.last = p.more, 0, now
	return more, true
}
