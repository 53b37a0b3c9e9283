package coordinator

import "time"

// pause finds times in which hdsd did nothing, as when the process or its machine was
// paused.
type pause struct {
	ticked time.Time // the latest tick
	until  time.Time // when the core stops to only listen
}

// listenUntil returns until when the core only takes in events: for a report interval
// after a pause. What checkers reported meanwhile is on its way, and no checker is late
// that hdsd did not read.
func (p *pause) listenUntil(now time.Time, report time.Duration) time.Time {
	if !p.ticked.IsZero() && now.Sub(p.ticked) > longestSleep+report {
		p.until = now.Add(report)
	}
	p.ticked = now
	return p.until
}
