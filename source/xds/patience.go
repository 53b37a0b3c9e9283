package xds

import "time"

// Bounds of NACKs about one type: a server that answers each with the same mistake gets
// mostNacks at once, then nacksPerSecond.
const (
	mostNacks      = 10
	nacksPerSecond = 1
)

// patience paces the NACKs about one type, over all streams with the server. The first
// ones go out at once, and so do those of a server that makes mistakes rarely.
type patience struct {
	bucket bucket
	paid   bool // the next NACK has its token
}

func newPatience() patience {
	return patience{bucket: bucket{most: mostNacks, rate: nacksPerSecond, tokens: mostNacks}}
}

// wait returns how long the next NACK has to wait.
func (p *patience) wait(now time.Time) (wait time.Duration) {
	if !p.paid {
		wait = p.bucket.take(now)
		p.paid = wait == 0
	}
	return wait
}

// spend notes that a NACK goes out.
func (p *patience) spend() { p.paid = false }

// soonest combines the times after which two things are due; negative is never.
func soonest(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// never says that nothing is due.
const never = time.Duration(-1)
