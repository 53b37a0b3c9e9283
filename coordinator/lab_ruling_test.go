package coordinator

import (
	"time"

	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/store"
)

// What the lab shares with the tests of overrides, freezes, shadow mode and of
// what is gone: what operators do, and what can be asked.

// freeze freezes publishing, and gives the freeze before, nil for none, and the one after.
func (l *lab) freeze(asked api.Freeze) (before *api.Freeze, after api.Freeze) {
	replaced, set, effects := l.core.rulings.Freeze(l.now, asked.Author, asked.Reason, asked.Hold)
	l.core.applyRulings(l.now, effects)
	return shownFreeze(replaced), *shownFreeze(set)
}

// unfreeze ends a freeze, and gives it; nil where there was none.
func (l *lab) unfreeze(author string) *api.Freeze {
	ended, effects := l.core.rulings.Unfreeze(author)
	l.core.applyRulings(l.now, effects)
	return shownFreeze(ended)
}

// override sets an override, and gives the one that it replaces.
func (l *lab) override(o store.Override) (replaced *api.Override, err error) {
	_, before, effects, err := l.core.rulings.SetOverride(l.now, o)
	l.core.applyRulings(l.now, effects)
	return shownOverride(before), refusal(err)
}

// clear ends overrides by bob's word.
func (l *lab) clear(scope health.Endpoint, all bool) ([]api.Override, error) {
	ended, effects, err := l.core.rulings.ClearOverrides(l.now, scope, all, "bob")
	l.core.applyRulings(l.now, effects)
	return shownOverrides(ended), refusal(err)
}

// inForce gives the override for exactly a scope.
func (l *lab) inForce(scope health.Endpoint) *api.Override {
	for _, o := range l.core.rulings.Overrides() {
		if o.Scope == scope {
			return shownOverride(&o)
		}
	}
	return nil
}

// overridable tells whether an override of a scope would be taken.
func (l *lab) overridable(scope health.Endpoint) bool {
	return l.core.rulings.Overridable(&scope) == nil
}

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

// present are the endpoints that have an id, with the health that is held to be true.
func (l *lab) present() map[health.Endpoint]health.Status {
	all := map[health.Endpoint]health.Status{}
	for k := range l.core.rulings.Clusters() {
		for i := range k.Endpoints {
			if e := &k.Endpoints[i]; l.hasID(e.Key) {
				all[e.Key] = l.core.rulings.HealthOf(e)
			}
		}
	}
	if got := l.core.rulings.Len(); got != len(all) {
		l.t.Errorf("%d endpoints have ids, and %d of them are in a cluster", got, len(all))
	}
	return all
}

func (l *lab) hasID(key health.Endpoint) bool {
	_, ok := l.core.rulings.Find(key.Hash())
	return ok
}

// idOf is the id of an endpoint.
func (l *lab) idOf(key health.Endpoint) health.EndpointID {
	l.t.Helper()
	id, ok := l.core.rulings.Find(key.Hash())
	if !ok {
		l.t.Fatalf("%v has no id", key)
	}
	return id
}

// counted are the present endpoints by their health, as the metrics have them.
func (l *lab) counted(status health.Status) int { return l.core.rulings.Counts()[status] }

// kept are the endpoints that are not there, and of which something is known from
// before the start.
func (l *lab) kept() map[health.Hash]health.Endpoint {
	all := map[health.Hash]health.Endpoint{}
	for _, t := range l.transitions {
		if hash := t.Endpoint.Hash(); l.core.rulings.Remembers(hash) {
			all[hash] = t.Endpoint
		}
	}
	return all
}

// canBeGone tells whether an endpoint that is not there is known to be gone: hdsd has
// settled, all sources have answered, and no mistake hides the endpoint's cluster.
func (l *lab) canBeGone(key health.Endpoint) bool {
	return l.core.rulings.IsConclusive() && !isHidden(l.core.rulings.Cluster(key.Cluster))
}

// isHidden tells whether a mistake hides the endpoints of a cluster.
func isHidden(k *catalog.Cluster) bool {
	return k != nil && k.Source.Rejected != "" && k.Source.Assignment == nil
}

// known is what a test compares a change of the sources with.
type known struct {
	present map[health.Endpoint]health.Status
	heard   map[string]bool // sources that have answered
	hidden  map[string]bool // clusters whose endpoints a mistake hides
}

func (l *lab) known() known {
	k := known{present: l.present(), heard: l.heard, hidden: map[string]bool{}}
	for cluster := range l.core.rulings.Clusters() {
		k.hidden[cluster.Source.Name] = isHidden(cluster)
	}
	return k
}

// setTrust sets what an operator says of a checker.
func (l *lab) setTrust(checker string, said *store.Trust) {
	l.t.Helper()
	change, err := l.core.trust.set(checker, said)
	if err != nil {
		l.t.Fatal(err)
	}
	l.core.applyTrust(change)
}

// clearTrust returns a checker to automatic trust.
func (l *lab) clearTrust(checker, author string) {
	if change, changed := l.core.trust.clear(checker, author); changed {
		l.core.applyTrust(change)
	}
}
