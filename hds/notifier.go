package hds

import (
	"sync"
	"sync/atomic"

	"hdsd/health"
)

// newsPerInterval is how often in a report interval the sink is told at most that a checker
// was heard and says what it said before. One that reports as it should is far from it.
const newsPerInterval = 10

// notifier calls the sink about one session, one call at a time.
type notifier struct {
	sink   Sink
	pause  int64       // the least time between two calls that tell of no news
	silent atomic.Bool // the sink was told that the checker is silent

	told int64 // when the sink was told of a report; owned by the goroutine that receives

	mu   sync.Mutex // held for each call of the sink after Connected
	over bool       // the session has ended
}

// spares reports whether the sink need not hear of a report without news at a time.
func (n *notifier) spares(now int64) bool { return n.told != 0 && now-n.told < n.pause }

// reported tells the sink of a report, after all that the report changes. It reports whether
// the checker was silent until then: one that accepts a plan, even an empty one, is not.
func (n *notifier) reported(now int64, id string, votes []health.Vote, accepted *plan, follows bool) (spoke bool) {
	n.told = now
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

// fallSilent tells the sink that the checker is silent, unless the session has
// ended or the checker follows after all. It reports whether it told.
func (n *notifier) fallSilent(id string, follows *atomic.Bool) bool {
	if follows.Load() {
		return false // without waiting for a sink that is busy with a report
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over || follows.Load() {
		return false
	}
	n.silent.Store(true)
	n.sink.Silent(id, true)
	return true
}

// end makes later calls of fallSilent do nothing.
func (n *notifier) end() {
	n.mu.Lock()
	n.over = true
	n.mu.Unlock()
}
