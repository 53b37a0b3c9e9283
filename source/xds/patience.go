package xds

import (
	"time"

	"golang.org/x/time/rate"
)

// Bounds of NACKs about one type: a server that answers each with the same mistake gets
// mostNacks at once, then nacksPerSecond.
const (
	mostNacks      = 10
	nacksPerSecond = 1
)

// Patience paces the NACKs about one type: of a source over all streams with the server, of a
// relay's client over its stream. The first ones go out at once, and so do those of a server
// that makes mistakes rarely.
type Patience struct {
	limiter *rate.Limiter
	paid    bool // the next NACK has its token
}

// NewPatience returns the patience with a server that has made no mistake.
func NewPatience() Patience {
	return Patience{limiter: rate.NewLimiter(nacksPerSecond, mostNacks)}
}

// Wait returns how long the next NACK has to wait.
func (p *Patience) Wait(now time.Time) (wait time.Duration) {
	if !p.paid {
		wait = take(p.limiter, now)
		p.paid = wait == 0
	}
	return wait
}

// Spend records that a NACK goes out.
func (p *Patience) Spend() { p.paid = false }

// soonest combines the times after which two things are due; negative is never.
func soonest(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// never means that nothing is due.
const never = time.Duration(-1)
