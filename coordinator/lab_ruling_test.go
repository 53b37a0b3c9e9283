package coordinator

import (
	"time"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

// freeze freezes publishing. It returns the previous freeze, or nil, and the new one.
func (l *lab) freeze(asked api.Freeze) (before *api.Freeze, after api.Freeze) {
	order := &machine.Freeze{Author: asked.Author, Reason: asked.Reason, Hold: asked.Hold}
	l.step(order)
	return shownFreeze(order.Before), *shownFreeze(order.After)
}

// unfreeze ends a freeze, and returns it, or nil.
func (l *lab) unfreeze(author string) *api.Freeze {
	order := &machine.Unfreeze{Author: author}
	l.step(order)
	return shownFreeze(order.Before)
}

// override sets an override. It returns the replaced one, or nil.
func (l *lab) override(o log.Override) (replaced *api.Override, err error) {
	order := &machine.SetOverride{Override: o}
	l.step(order)
	return l.core.names.override(order.Replaced), refusal(order.Err)
}

// clear ends overrides, as bob.
func (l *lab) clear(scope health.Endpoint, all bool) ([]api.Override, error) {
	order := &machine.ClearOverrides{Scope: scope, All: all, Author: "bob"}
	l.step(order)
	return l.core.names.overrides(order.Ended), refusal(order.Err)
}

// inForce returns the override of a scope, or nil.
func (l *lab) inForce(scope health.Endpoint) *api.Override {
	for _, o := range l.core.Rulings.Overrides() {
		if o.Scope == scope {
			return l.core.names.override(&o)
		}
	}
	return nil
}

// overridable reports whether hdsd accepts an override of a scope.
func (l *lab) overridable(scope health.Endpoint) bool {
	return l.core.Rulings.Overridable(&scope) == nil
}

// setOverride sets an override as ann. It expires if the duration is not zero.
func (l *lab) setOverride(scope health.Endpoint, to health.Status, lasts time.Duration) {
	l.t.Helper()
	o := log.Override{Scope: scope, Status: to, Reason: "kernel", Author: "ann"}
	if lasts > 0 {
		o.Until = l.now.Add(lasts)
	}
	if _, err := l.override(o); err != nil {
		l.t.Fatal(err)
	}
}

// drain drains a scope, as ann.
func (l *lab) drain(scope health.Endpoint) { l.setOverride(scope, drained, 0) }

// clearScope clears the override of a scope.
func (l *lab) clearScope(scope health.Endpoint) {
	l.t.Helper()
	if _, err := l.clear(scope, false); err != nil {
		l.t.Fatal(err)
	}
}

// present returns the endpoints with an id, and their health.
func (l *lab) present() map[health.Endpoint]health.Status {
	all := map[health.Endpoint]health.Status{}
	for k := range l.core.Rulings.Clusters() {
		for i := range k.Endpoints {
			if e := &k.Endpoints[i]; l.hasID(e.Key()) {
				all[e.Key()] = l.core.Rulings.HealthOf(e)
			}
		}
	}
	if got := l.core.Rulings.Len(); got != len(all) {
		l.t.Errorf("%d endpoints have ids, and %d of them are in a cluster", got, len(all))
	}
	return all
}

func (l *lab) hasID(key health.Endpoint) bool {
	_, ok := l.core.Rulings.Find(key.Hash())
	return ok
}

// idOf returns the id of an endpoint.
func (l *lab) idOf(key health.Endpoint) health.EndpointID {
	l.t.Helper()
	id, ok := l.core.Rulings.Find(key.Hash())
	if !ok {
		l.t.Fatalf("%v has no id", key)
	}
	return id
}

// counted returns the number of endpoints with a health in the metrics.
func (l *lab) counted(status health.Status) int { return l.core.Rulings.Counts()[status] }

// keptEndpoints returns the absent endpoints with remembered health.
func (l *lab) keptEndpoints() map[health.Hash]health.Endpoint {
	all := map[health.Hash]health.Endpoint{}
	for _, t := range l.transitions {
		if hash := t.Endpoint.Hash(); l.core.Rulings.Remembers(hash) {
			all[hash] = t.Endpoint
		}
	}
	return all
}

// canBeGone reports whether an absent endpoint is gone: hdsd has settled, all sources have answered, and no
// mistake hides the cluster.
func (l *lab) canBeGone(key health.Endpoint) bool {
	return l.core.Rulings.IsConclusive() && !isHidden(l.core.Rulings.Cluster(key.Cluster))
}

// isHidden reports whether a mistake hides the endpoints of a cluster.
func isHidden(k *catalog.Cluster) bool {
	return k != nil && k.Source.Rejected != "" && k.Source.Assignment == nil
}

// knownState is the state before a change of the sources.
type knownState struct {
	present map[health.Endpoint]health.Status
	heard   map[string]bool // sources that have answered
	hidden  map[string]bool // clusters whose endpoints a mistake hides
}

func (l *lab) snapshotSources() knownState {
	k := knownState{present: l.present(), heard: l.answeredSources, hidden: map[string]bool{}}
	for cluster := range l.core.Rulings.Clusters() {
		k.hidden[cluster.Source.Name] = isHidden(cluster)
	}
	return k
}

// setTrust sets the trust of an operator in a checker.
func (l *lab) setTrust(checker string, said *log.Trust) {
	l.t.Helper()
	order := &machine.SetTrust{Checker: checker, Trust: *said}
	if l.step(order); order.Err != nil {
		l.t.Fatal(order.Err)
	}
}

// clearTrust returns a checker to automatic trust.
func (l *lab) clearTrust(checker, author string) {
	l.step(&machine.ClearTrust{Checker: checker, Author: author})
}
