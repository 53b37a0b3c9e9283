package coordinator

import "time"

// pause finds out when hdsd did nothing for a time, as when the process or its
// machine was paused.
type pause struct {
	awake time.Time // the latest tick
	until time.Time // hdsd only listens
}

// listenUntil returns until when the core only listens: for a report interval
// after a pause. What checkers said meanwhile is on its way, and nobody is late
// who was not listened to.
func (p *pause) listenUntil(now time.Time, report time.Duration) time.Time {
	if !p.awake.IsZero() && now.Sub(p.awake) > longestSleep+report {
		p.until = now.Add(report)
	}
	p.awake = now
	return p.until
}
