package hds

import (
	"sync"
	"sync/atomic"

	"hdsd/health"
)

// notifier calls the sink about one session, one call at a time.
type notifier struct {
	sink   Sink
	silent atomic.Bool // the sink was told that the checker is silent

	mu   sync.Mutex // held for each call of the sink after Connected
	over bool       // the session has ended
}

// reported tells the sink of a report, after all that the report changes. It
// reports whether the checker was silent until then.
func (n *notifier) reported(id string, votes []health.Vote, accepted *plan, follows bool) (spoke bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if follows && n.silent.CompareAndSwap(true, false) {
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
