package hds

import (
	"sync/atomic"
	"time"
)

// quietIntervals is the number of report intervals without input after which another session may
// take a session's node id.
const quietIntervals = 3

// handling is the value of activity.idle while hdsd handles a report.
const handling = -1

// activity records the input of a session. Any goroutine may read it. Times are those of
// Server.now.
type activity struct {
	now      func() int64
	heard    atomic.Int64  // time of the last input
	idle     atomic.Int64  // time since which hdsd waits for input; handling while it does not
	blocked  atomic.Int64  // time since which hdsd does not read
	held     atomic.Int64  // total time for which hdsd did not read
	reports  atomic.Uint64 // number of reports
	reported atomic.Int64  // time of the last report
}

func (a *activity) hear() { a.heard.Store(a.now()) }

// block records that hdsd does not read from now on, until unblock.
func (a *activity) block(now int64) {
	a.blocked.Store(now)
	a.idle.Store(handling)
}

func (a *activity) unblock() {
	now := a.now()
	if a.idle.Swap(now) == handling {
		a.held.Add(now - a.blocked.Load())
	}
}

// heldUp returns the total time for which hdsd was busy with the checker's input, and did not
// read more.
func (a *activity) heldUp() time.Duration {
	total := a.held.Load()
	if a.idle.Load() == handling {
		total += a.now() - a.blocked.Load()
	}
	return time.Duration(total)
}

// report records a report, and returns its time.
func (a *activity) report() int64 {
	now := a.now()
	a.heard.Store(now)
	a.reported.Store(now)
	a.reports.Add(1)
	return now
}

// silence returns the time since the last input.
func (a *activity) silence() time.Duration { return time.Duration(a.now() - a.heard.Load()) }

// keepsIDUntil returns the time until which no other session gets the node id, unless more input
// arrives. A held up hdsd has not read the checker's input.
func (a *activity) keepsIDUntil(interval time.Duration) int64 {
	idle := a.idle.Load() // before heard, which changes first
	if idle == handling {
		return a.now() + int64(interval)
	}
	return max(a.heard.Load()+quietIntervals*int64(interval), idle+int64(interval))
}

// lastReport returns the time of the last report; zero if there was none.
func (a *activity) lastReport() time.Time {
	if a.reports.Load() == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(a.reported.Load() - a.now()))
}
