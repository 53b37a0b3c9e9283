package machine

import "time"

// pause finds times in which hdsd did nothing, as when the process or its machine was
// paused.
type pause struct {
	ticked time.Time // the latest tick
	until  time.Time // when the core stops to only listen
}

// listenUntil returns until when the core only takes in events: for a report interval
// after a pause. What checkers reported meanwhile is on its way, and no checker is late
// that hdsd did not read. It also returns how long a pause lasted that has just ended, or 0.
func (p *pause) listenUntil(now time.Time, report time.Duration) (until time.Time, lasted time.Duration) {
	if since := now.Sub(p.ticked); !p.ticked.IsZero() && since > longestSleep+report {
		p.until, lasted = now.Add(report), since
	}
	p.ticked = now
	return p.until, lasted
}
