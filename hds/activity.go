package hds

import (
	"sync/atomic"
	"time"
)

// quietIntervals is how many report intervals a session must say nothing before
// another of its node id may take its place.
const quietIntervals = 3

// handling is the value of activity.idle while hdsd handles a report.
const handling = -1

// activity is when a session was heard. Any goroutine may ask. Times are those of
// Server.now.
type activity struct {
	now      func() int64
	heard    atomic.Int64  // when anything came in last
	idle     atomic.Int64  // since when hdsd waits for input; handling while it does not
	blocked  atomic.Int64  // since when it does not
	held     atomic.Int64  // for how long it did not, in all
	reports  atomic.Uint64 // how many came in
	reported atomic.Int64  // when the last one did
}

func (a *activity) hear() { a.heard.Store(a.now()) }

// block notes that hdsd does not read until unblock, from a time on.
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

// heldUp is for how long hdsd was busy with what the checker said, in all, and did not read
// more.
func (a *activity) heldUp() time.Duration {
	all := a.held.Load()
	if a.idle.Load() == handling {
		all += a.now() - a.blocked.Load()
	}
	return time.Duration(all)
}

// report notes that a report came in, and returns when.
func (a *activity) report() int64 {
	now := a.now()
	a.heard.Store(now)
	a.reported.Store(now)
	a.reports.Add(1)
	return now
}

// silence is how long nothing was heard.
func (a *activity) silence() time.Duration { return time.Duration(a.now() - a.heard.Load()) }

// keepsIDUntil gives the time until which nobody else gets the session's node id
// if nothing more is heard. While hdsd itself is held up, it has not read what the
// checker says.
func (a *activity) keepsIDUntil(interval time.Duration) int64 {
	idle := a.idle.Load() // before heard, which changes first
	if idle == handling {
		return a.now() + int64(interval)
	}
	return max(a.heard.Load()+quietIntervals*int64(interval), idle+int64(interval))
}

// lastReport gives the time of the last report; zero if there was none.
func (a *activity) lastReport() time.Time {
	if a.reports.Load() == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(a.reported.Load() - a.now()))
}
