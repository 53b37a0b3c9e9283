package hds

import (
	"sync"
	"sync/atomic"

	"hdsd/health"
)

// newsPerInterval bounds the calls of the sink per report interval for reports without news. A
// well-behaved checker is far from it.
const newsPerInterval = 10

// notifier calls the sink about one session, one call at a time.
type notifier struct {
	sink   Sink
	pause  int64       // the least time between two calls without news
	silent atomic.Bool // the sink knows that the checker is silent

	reportedAt int64 // time of the sink's last call for a report; owned by the receiving goroutine

	mu    sync.Mutex // held for each call of the sink after Connected
	ended bool       // the session has ended
}

// spares reports whether the sink need not hear of a report without news now.
func (n *notifier) spares(now int64) bool { return n.reportedAt != 0 && now-n.reportedAt < n.pause }

// reported tells the sink of a report, after applying its changes. It reports whether this ends
// the silence of the checker: a checker that accepts a plan, even an empty one, is not silent.
func (n *notifier) reported(now int64, id string, votes []health.Vote, accepted *plan, follows bool) (spoke bool) {
	n.reportedAt = now
	n.mu.Lock()
	defer n.mu.Unlock()
	if (follows || accepted != nil) && n.silent.CompareAndSwap(true, false) {
		spoke = true
		n.sink.Silent(id, false)
	}
	if accepted != nil {
		n.sink.Accepted(id, accepted.spec)
	}
	n.sink.Reported(id, votes)
	return spoke
}

// fallSilent tells the sink that the checker is silent, unless the session has ended or the
// checker follows after all. It reports whether it did.
func (n *notifier) fallSilent(id string, follows *atomic.Bool) bool {
	if follows.Load() {
		return false // does not wait for a sink that is busy with a report
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || follows.Load() {
		return false
	}
	n.silent.Store(true)
	n.sink.Silent(id, true)
	return true
}

// end makes later calls of fallSilent do nothing.
func (n *notifier) end() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
}
