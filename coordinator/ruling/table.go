package ruling

import (
	"iter"
	"maps"
	"time"

	"hdsd/aggregate"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// Table holds what hdsd holds to be true of each endpoint, and decides what is published.
type Table struct {
	*Pacing
	*Takeovers
	clusters   clusters
	rows       rows
	overrides  overrides
	publishing publishing
	past       past
	zoneViews  zoneViews
	heirs      map[health.Hash]heir                   // endpoints that came with the verdict of another one, by that
	verdict    func(health.EndpointID) health.Verdict // of the votes, with its reason

	started  bool            // overrides may expire
	settled  bool            // an endpoint that leaves its source is gone
	complete bool            // all sources have given everything they were asked for
	answered map[string]bool // sources that had, before the latest change
}

// New makes an empty table. It calls verdict for the verdict of the votes with its reason.
func New(verdict func(health.EndpointID) health.Verdict) *Table {
	t := &Table{
		verdict:   verdict,
		clusters:  clusters{byName: map[string]*catalog.Cluster{}, byService: map[string][]*catalog.Cluster{}, versions: map[string][]*catalog.Cluster{}},
		rows:      rows{ids: map[health.Hash]health.EndpointID{}, checked: map[*catalog.Cluster][]health.EndpointID{}},
		past:      past{last: map[health.Hash]store.Held{}, voted: map[health.Hash]health.Verdict{}},
		zoneViews: zoneViews{}, heirs: map[health.Hash]heir{},
	}
	t.Pacing = newPacing(t)
	t.Takeovers = newTakeovers(t)
	t.publishing.takeovers = t.Takeovers
	return t
}

// Restore takes over what was stored, before the first Apply. The table owns the maps of s
// that it uses afterwards.
func (t *Table) Restore(s store.State) {
	t.past.restore(s.Current, s.Voted)
	t.publishing.setFreeze(s.Freeze)
	t.stored = s.GivenBack
	for _, o := range s.Overrides {
		t.overrides.put(&Override{Override: o})
	}
}

// Start says that the sources were read. From then on overrides expire, including those
// whose time was over before.
func (t *Table) Start(now time.Time) Effects {
	t.started = true
	return t.Expire(now)
}

// Settle says that hdsd has settled. From then on an endpoint that leaves its source is gone.
func (t *Table) Settle(now time.Time) Effects {
	t.settled = true
	t.settle(now)
	e := t.edit(now)
	e.concludePast()
	return e.finish()
}

// IsConclusive reports whether hdsd has settled and all sources have answered, so that an
// endpoint that is not there is gone.
func (t *Table) IsConclusive() bool { return t.settled && t.complete }

// Remembers reports whether an endpoint that is not there would continue with its last
// health if it came back.
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
	d := decision.Decision{
		Health:      make([]eds.Health, 0, len(changes)),
		Transitions: make([]health.Transition, 0, len(changes)),
	}
	for i := range changes {
		change := &changes[i]
		passes, more, left := t.admit(now, &t.rows.all[change.Endpoint], change)
		if e.LeftOut += left; passes {
			t.turn(&d, now, change.Endpoint, &health.Verdict{Status: change.To, Reason: change.Reason, Observations: change.Observations}, more)
		}
	}
	d.Zones = t.zoneHealth(t.zoneViews.apply(views))
	e.add(d)
	return e
}

// zoneHealth returns what to publish of zone views.
func (t *Table) zoneHealth(views []zoneView) []decision.ZoneHealth {
	return t.zoneViews.health(views, func(id health.EndpointID) bool { return t.publishing.zoneHealthCounts(&t.rows.all[id]) })
}

// NextDeadline returns when Expire, Release or TakeOver next has something to do, if ever.
func (t *Table) NextDeadline() (time.Time, bool) {
	at, ok := t.next()
	if due, waits := t.nextDue(); waits && t.publishing.freeze == nil && (!ok || due.Before(at)) {
		at, ok = due, true
	}
	if end := t.overrides.expireAt; t.started && t.publishing.freeze == nil && !end.IsZero() && (!ok || end.Before(at)) {
		return end, true
	}
	return at, ok
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

// IDOf is Find for an endpoint of a cluster, and quicker if that is present.
func (t *Table) IDOf(e *catalog.Endpoint) (id health.EndpointID, ok bool) {
	if ids := t.rows.checked[e.Cluster()]; ids != nil && e.Checked() != catalog.None {
		return ids[e.Checked()], true
	}
	return t.Find(e.Hash())
}

// At returns the cluster of an id, or nil if the id is not in use, and the index in
// Checked.Endpoints, or catalog.None.
func (t *Table) At(id health.EndpointID) (k *catalog.Cluster, index int) {
	r := &t.rows.all[id]
	return r.cluster, int(r.index)
}

// Ruling is what hdsd holds to be true of an endpoint.
type Ruling struct {
	Health   health.Status
	Judged   bool      // the votes have or had a verdict
	Override *Override // nil if the votes decide
	Since    time.Time // when the override began or the latest one ended; zero if there was none
}

// Ruling returns what hdsd holds to be true of an endpoint, by an id in use.
func (t *Table) Ruling(id health.EndpointID) Ruling {
	r := &t.rows.all[id]
	out := Ruling{Health: r.health(), Judged: r.judged}
	if r.overlay != nil {
		out.Since = r.overlay.since
	}
	if o := r.override(); o != nil {
		shown := *o
		out.Override = &shown
	}
	return out
}

// HealthOf returns the health that hdsd holds to be true of an endpoint.
func (t *Table) HealthOf(e *catalog.Endpoint) health.Status {
	if id, ok := t.IDOf(e); ok {
		return t.rows.all[id].health()
	}
	return health.Unknown
}

// Frozen returns the freeze, or nil.
func (t *Table) Frozen() *store.Freeze { return t.publishing.freeze }

// Overrides returns the overrides in force, in no order.
func (t *Table) Overrides() []Override {
	all := make([]Override, 0, len(t.overrides.all))
	for _, o := range t.overrides.all {
		all = append(all, *o)
	}
	return all
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
