package coordinator

import (
	"maps"
	"slices"
	"sync"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

// historyStore stores the history, and the state for a restart.
type historyStore interface {
	eventStore
	Apply(*log.Entry)
	Forget(known func(health.Hash) bool)
}

// recorder applies the entries of the log to the history. It never waits for the disk.
type recorder struct {
	history historyStore
	*present
	followed      *log.State                // the state of the log of several replicas, which stores the entries; nil: alone
	onTransitions func([]health.Transition) // called after the history takes the transitions; must not wait; may be nil
}

func (r *recorder) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.Logged:
		if r.followed == nil {
			r.history.Apply(e.Entry)
			r.tell(e.Entry)
		}
	case machine.ForgetDue:
		r.forget()
	}
}

// tell tells of the transitions of an entry that the history has taken.
func (r *recorder) tell(e *log.Entry) {
	if len(e.Transitions) > 0 && r.onTransitions != nil {
		r.onTransitions(e.Transitions)
	}
}

// forget removes the health of absent endpoints from the store.
func (r *recorder) forget() {
	// Clusters are immutable, so the goroutine of the store may read them.
	clusters := slices.Collect(r.Rulings.Clusters())
	var elsewhere []health.Hash // in no source of this replica, but in one of another
	if r.followed != nil {
		elsewhere = slices.Collect(maps.Keys(r.followed.Current))
	}
	known := sync.OnceValue(func() map[health.Hash]struct{} {
		all := endpointHashes(clusters)
		for _, hash := range elsewhere {
			all[hash] = struct{}{}
		}
		return all
	})
	r.history.Forget(func(hash health.Hash) bool {
		_, ok := known()[hash]
		return ok
	})
}

// endpointHashes returns the hashes of all endpoints, including unchecked ones.
func endpointHashes(clusters []*catalog.Cluster) map[health.Hash]struct{} {
	all := map[health.Hash]struct{}{}
	for _, k := range clusters {
		for i := range k.Endpoints {
			all[k.Endpoints[i].Hash()] = struct{}{}
		}
	}
	return all
}
