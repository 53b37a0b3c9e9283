package coordinator

import (
	"maps"
	"time"

	"hdsd/api"
	"hdsd/health"
	"hdsd/store"
)

// What the lab shares with the tests of overrides, freezes, shadow mode and of
// what is gone: what operators do, and what can be asked.

// freeze freezes publishing, and gives the freeze before, nil for none, and the one after.
func (l *lab) freeze(asked api.Freeze) (before *api.Freeze, after api.Freeze) {
	replaced, set := l.core.freeze(asked, l.now)
	return shownFreeze(replaced), *shownFreeze(set)
}

// unfreeze ends a freeze, and gives it; nil where there was none.
func (l *lab) unfreeze(author string) *api.Freeze { return shownFreeze(l.core.unfreeze(author)) }

// override sets an override, and gives the one that it replaces.
func (l *lab) override(o store.Override) (replaced *api.Override, err error) {
	_, before, err := l.core.override(o, l.now)
	return shownOverride(before), err
}

// clear ends overrides by bob's word.
func (l *lab) clear(scope health.Endpoint, all bool) ([]api.Override, error) {
	ended, err := l.core.clear(scope, all, "bob", l.now)
	return shownOverrides(ended), err
}

// inForce gives the override for exactly a scope.
func (l *lab) inForce(scope health.Endpoint) *api.Override {
	return shownOverride(l.core.overrides.all[scope])
}

// overridable tells whether an override of a scope would be taken.
func (l *lab) overridable(scope health.Endpoint) bool { return l.core.overridable(&scope) == nil }

// force is drain with another health, and an end.
func (l *lab) force(scope health.Endpoint, to health.Status, lasts time.Duration) {
	l.t.Helper()
	o := store.Override{Scope: scope, Status: to, Reason: "kernel", Author: "ann"}
	if lasts > 0 {
		o.Until = l.now.Add(lasts)
	}
	if _, err := l.override(o); err != nil {
		l.t.Fatal(err)
	}
}

// drain sets an override of ann's.
func (l *lab) drain(scope health.Endpoint) { l.force(scope, drained, 0) }

// cleared clears the override for exactly a scope.
func (l *lab) cleared(scope health.Endpoint) {
	l.t.Helper()
	if _, err := l.clear(scope, false); err != nil {
		l.t.Fatal(err)
	}
}

// describe is what /v1/clusters shows of a cluster.
func (l *lab) describe(name string) api.Cluster { return l.core.describe(l.core.clusters[name]) }

// present are the endpoints that have an id, with the health that is held to be true.
func (l *lab) present() map[health.Endpoint]health.Status {
	all := map[health.Endpoint]health.Status{}
	for _, id := range l.core.table.ids {
		row := &l.core.table.rows[id]
		all[row.key()] = row.health()
	}
	return all
}

// idOf is the id of an endpoint.
func (l *lab) idOf(key health.Endpoint) (health.EndpointID, bool) {
	id, ok := l.core.table.ids[key.Hash()]
	return id, ok
}

// counted are the present endpoints by their health, as the metrics have them.
func (l *lab) counted(status health.Status) int { return l.core.table.counts[status] }

// kept is what is known from before the start of endpoints that are not there.
func (l *lab) kept() map[health.Hash]store.Held { return maps.Clone(l.core.last) }

// canBeGone tells whether an endpoint that is not there is known to be gone: hdsd has
// settled, all sources have answered, and no mistake hides the endpoint's cluster.
func (l *lab) canBeGone(key health.Endpoint) bool {
	return !l.core.fleet.Settling() && !l.core.unread && !hides(l.core.clusters[key.Cluster])
}

// known is what a test compares a change of the sources with.
type known struct {
	present map[health.Endpoint]health.Status
	heard   map[string]bool // sources that have answered
	hidden  map[string]bool // clusters whose endpoints a mistake hides
}

func (l *lab) known() known {
	k := known{present: l.present(), heard: l.core.heard, hidden: map[string]bool{}}
	for name, cluster := range l.core.clusters {
		k.hidden[name] = hides(cluster)
	}
	return k
}
