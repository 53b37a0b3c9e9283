package ruling

import (
	"iter"
	"maps"
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// Table holds the true health of each endpoint as hdsd sees it, and decides the published one.
type Table struct {
	Pacing
	clusters   clusters
	rows       rows
	overrides  overrides
	publishing publishing
	takeovers  *takeovers
	past       past
	zoneViews  zoneViews
	heirs      map[health.Hash]heir                   // endpoints that began with the verdict of another, by that
	verdict    func(health.EndpointID) health.Verdict // of the votes, with its reason

	started  bool            // overrides may expire
	settled  bool            // an endpoint that leaves its source is gone
	complete bool            // all sources have answered in full
	answered map[string]bool // sources that had, before the latest change
}

// New makes an empty table. It calls verdict for the verdict of the votes with its reason.
func New(verdict func(health.EndpointID) health.Verdict) *Table {
	t := &Table{
		verdict:   verdict,
		clusters:  clusters{byName: map[string]*catalog.Cluster{}, byService: map[string][]*catalog.Cluster{}, versions: map[string][]*catalog.Cluster{}},
		rows:      rows{ids: map[health.Hash]health.EndpointID{}, checked: map[*catalog.Cluster][]health.EndpointID{}},
		past:      past{last: map[health.Hash]log.Health{}, voted: map[health.Hash]health.Verdict{}},
		zoneViews: zoneViews{}, heirs: map[health.Hash]heir{},
	}
	t.Pacing, t.takeovers = newPacing(), newTakeovers()
	t.publishing.takeovers = t.takeovers
	return t
}

// Restore takes the stored state, before the first Apply. Afterwards the table owns the maps of
// s that it uses.
func (t *Table) Restore(s log.State) {
	t.past.restore(s.Current, s.Voted)
	t.publishing.setFreeze(s.Freeze)
	if s.GivenBack != nil {
		t.takeovers.keptGivenBack = s.GivenBack
	}
	if s.TakenOver != nil {
		t.takeovers.keptTakenOver, t.takeovers.isComplete = s.TakenOver, true
	}
	for _, o := range s.Overrides {
		t.overrides.put(&Override{Override: o})
	}
}

// Start marks the sources as read. From then on overrides expire, including those already over.
func (t *Table) Start(now time.Time) Effects {
	t.started = true
	return t.Expire(now)
}

// Settle marks hdsd as settled. From then on an endpoint that leaves its source is gone.
func (t *Table) Settle(now time.Time) Effects {
	t.settled = true
	t.takeovers.settle(now)
	e := t.edit(now)
	e.concludePast()
	return e.finish()
}

// IsConclusive reports whether hdsd has settled and all sources have answered, so that an
// absent endpoint is gone.
func (t *Table) IsConclusive() bool { return t.settled && t.complete }

// Remembers reports whether an absent endpoint would continue with its last health if it came
// back.
func (t *Table) Remembers(hash health.Hash) bool {
	_, ok := t.past.last[hash]
	return ok
}

// Decide applies changed verdicts of the votes and changed zone views. Under an override, a
// verdict is only stored. If an endpoint changes too often, the change waits for Release.
func (t *Table) Decide(now time.Time, changes []aggregate.Change, views []aggregate.ZoneView) Effects {
	if len(changes)+len(views) == 0 {
		return Effects{}
	}
	t.advance(now)
	var e Effects
	d := Decision{
		Change: publish.Change{Health: make([]publish.Health, 0, len(changes))},
		Entry:  log.Entry{Transitions: make([]health.Transition, 0, len(changes))},
	}
	for i := range changes {
		change := &changes[i]
		passes, earlier, omitted := t.admit(now, &t.rows.byID[change.Endpoint], change)
		if e.LeftOut += omitted; passes {
			t.changeVerdict(&d, now, change.Endpoint, &health.Verdict{Status: change.To, Reason: change.Reason, Observations: change.Observations}, earlier)
		}
	}
	d.Zones = t.zoneHealth(t.zoneViews.apply(views))
	e.add(d)
	return e
}

// zoneHealth returns the health to publish for zone views.
func (t *Table) zoneHealth(views []zoneView) []publish.ZoneHealth {
	return t.zoneViews.health(views, func(id health.EndpointID) bool { return t.publishing.zoneHealthCounts(&t.rows.byID[id]) })
}

// NextDeadline returns the next time at which Expire, Release or TakeOver has work, if any.
func (t *Table) NextDeadline() (time.Time, bool) {
	deadline, ok := t.deadline()
	if due, pending := t.takeovers.nextDue(); pending && t.publishing.freeze == nil && (!ok || due.Before(deadline)) {
		deadline, ok = due, true
	}
	if end := t.overrides.expireAt; t.started && t.publishing.freeze == nil && !end.IsZero() && (!ok || end.Before(deadline)) {
		return end, true
	}
	return deadline, ok
}

// Cluster returns the present cluster of a name, or nil.
func (t *Table) Cluster(name string) *catalog.Cluster { return t.clusters.byName[name] }

// Names returns the names of the present clusters, sorted. The caller must not modify it.
func (t *Table) Names() []string { return t.clusters.names }

// Clusters returns the present clusters, in no order.
func (t *Table) Clusters() iter.Seq[*catalog.Cluster] { return maps.Values(t.clusters.byName) }

// Find returns the id of an endpoint, if it has one. A checked endpoint has; an excluded one
// has if its last verdict is held or an override decides it.
func (t *Table) Find(hash health.Hash) (id health.EndpointID, ok bool) {
	id, ok = t.rows.ids[hash]
	return id, ok
}

// IDOf is Find for an endpoint of a cluster, and quicker if the cluster is present.
func (t *Table) IDOf(e *catalog.Endpoint) (id health.EndpointID, ok bool) {
	if ids := t.rows.checked[e.Cluster()]; ids != nil && e.Checked() != catalog.None {
		return ids[e.Checked()], true
	}
	return t.Find(e.Hash())
}

// At returns the cluster of an id and the index in Checked.Endpoints, or catalog.None. The
// cluster is nil if the id is not in use.
func (t *Table) At(id health.EndpointID) (k *catalog.Cluster, index int) {
	r := &t.rows.byID[id]
	return r.cluster, int(r.index)
}

// Ruling is hdsd's decision on an endpoint.
type Ruling struct {
	Health   health.Status
	Judged   bool      // the votes have or had a verdict
	Override *Override // nil if the votes decide
	Since    time.Time // when the override began or the latest one ended; zero if there was none
}

// Ruling returns hdsd's decision on an endpoint, by an id in use.
func (t *Table) Ruling(id health.EndpointID) Ruling {
	r := &t.rows.byID[id]
	ruling := Ruling{Health: r.health(), Judged: r.judged}
	if r.overlay != nil {
		ruling.Since = r.overlay.start
	}
	if o := r.override(); o != nil {
		shown := *o
		ruling.Override = &shown
	}
	return ruling
}

// HealthOf returns the health that hdsd holds to be true of an endpoint.
func (t *Table) HealthOf(e *catalog.Endpoint) health.Status {
	if id, ok := t.IDOf(e); ok {
		return t.rows.byID[id].health()
	}
	return health.Unknown
}

// Frozen returns the freeze, or nil.
func (t *Table) Frozen() *log.Freeze { return t.publishing.freeze }

// Overrides returns the overrides in force, in no order.
func (t *Table) Overrides() []Override {
	overrides := make([]Override, 0, len(t.overrides.byScope))
	for _, o := range t.overrides.byScope {
		overrides = append(overrides, *o)
	}
	return overrides
}

// Counts returns the numbers of endpoints with an id, by their health.
func (t *Table) Counts() Counts { return t.rows.counts }

// Len returns the number of endpoints with an id.
func (t *Table) Len() int { return len(t.rows.ids) }

// Exceptions returns the number of quarantined clusters and endpoints, and of clusters in shadow
// mode that have checked endpoints.
func (t *Table) Exceptions() (quarantined, shadowed int) {
	return t.clusters.quarantined, t.clusters.shadowed
}
