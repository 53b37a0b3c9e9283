package machine

import "time"

// pause detects times in which hdsd did nothing, for example because its process or host was suspended.
type pause struct {
	lastTick  time.Time
	listenEnd time.Time // until then, ticks only listen
}

// tick returns the time until which ticks only listen: a report interval from the end of a pause. Reports
// of checkers are on their way then, and no checker is late because hdsd did not read. It also returns the
// duration of a pause that has just ended, or 0.
func (p *pause) tick(now time.Time, report time.Duration) (listenEnd time.Time, duration time.Duration) {
	if elapsed := now.Sub(p.lastTick); !p.lastTick.IsZero() && elapsed > maxSleep+report {
		p.listenEnd, duration = now.Add(report), elapsed
	}
	p.lastTick = now
	return p.listenEnd, duration
}
