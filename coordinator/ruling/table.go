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

// Table says of each endpoint what hdsd holds to be true and what data planes are told.
type Table struct {
	clusters   clusters
	rows       rows
	overrides  overrides
	publishing publishing
	past       past
	zoneViews  zoneViews
	verdict    func(health.EndpointID) health.Verdict // of the votes, as the aggregator explains it

	started  bool            // overrides may expire
	settled  bool            // what leaves its source is gone
	complete bool            // each source has said all that it was asked
	answered map[string]bool // the sources that had, before the latest change
}

// New makes a table without clusters. It looks up the verdicts of the votes, with their
// reasons, by verdict.
func New(verdict func(health.EndpointID) health.Verdict) *Table {
	return &Table{
		verdict:   verdict,
		clusters:  clusters{byName: map[string]*catalog.Cluster{}, byService: map[string]map[string]*catalog.Cluster{}},
		rows:      rows{ids: map[health.Hash]health.EndpointID{}},
		past:      past{last: map[health.Hash]store.Held{}, voted: map[health.Hash]health.Verdict{}},
		zoneViews: zoneViews{},
	}
}

// Restore takes over what was stored, before the first Apply. It keeps s.Current and
// s.Voted.
func (t *Table) Restore(s store.State) {
	t.past.restore(s.Current, s.Voted)
	t.publishing.setFreeze(s.Freeze)
	for _, o := range s.Overrides {
		t.overrides.put(&Override{Override: o})
	}
}

// Start says that the sources were read, so that overrides may expire, also those that
// came to their end before the start.
func (t *Table) Start(now time.Time) Effects {
	t.started = true
	return t.Expire(now)
}

// Settle says that hdsd has settled: from now on, an endpoint that leaves its source is
// gone.
func (t *Table) Settle(now time.Time) Effects {
	t.settled = true
	e := t.edit(now)
	e.concludePast()
	return e.finish()
}

// IsConclusive tells whether hdsd has settled and each source has answered, so that what
// is not there is gone.
func (t *Table) IsConclusive() bool { return t.settled && t.complete }

// Remembers tells whether something is known from before the start of an endpoint that
// is not there, so that it goes on with that if it comes.
func (t *Table) Remembers(hash health.Hash) bool {
	_, ok := t.past.last[hash]
	return ok
}

// Decide takes over verdicts of the votes and views of zones that changed. A verdict
// under an override is not published, but stored beside it.
func (t *Table) Decide(now time.Time, changes []aggregate.Change, views []aggregate.ZoneView) Effects {
	if len(changes)+len(views) == 0 {
		return Effects{}
	}
	d := decision.Decision{
		Health:      make([]eds.Health, 0, len(changes)),
		Transitions: make([]health.Transition, 0, len(changes)),
	}
	for i := range changes {
		change := &changes[i]
		r := &t.rows.all[change.Endpoint]
		t.rows.judge(r, change.To, true)
		if r.override() != nil {
			if d.Voted == nil {
				d.Voted = map[health.Hash]*health.Verdict{}
			}
			d.Voted[r.hash] = &health.Verdict{Status: change.To, Since: now}
			continue
		}
		r.overlay = nil
		d.Health = append(d.Health, eds.Health{ID: change.Endpoint, Status: t.publishing.health(r)})
		d.Transitions = append(d.Transitions, health.Transition{
			Time: now, Endpoint: r.key(), From: change.From, To: change.To,
			Reason: change.Reason, Observations: change.Observations,
		})
	}
	d.Zones = t.zoneHealth(t.zoneViews.apply(views))
	var e Effects
	e.add(d)
	return e
}

// zoneHealth says what data planes of zones get.
func (t *Table) zoneHealth(views []zoneView) []decision.ZoneHealth {
	return t.zoneViews.health(views, func(id health.EndpointID) bool { return t.publishing.zoneHealthCounts(&t.rows.all[id]) })
}

// NextDeadline gives when Expire next has something to do, if ever.
func (t *Table) NextDeadline() (time.Time, bool) {
	return t.overrides.expireAt, t.started && !t.overrides.expireAt.IsZero()
}

// Cluster gives the present cluster of a name; nil for none.
func (t *Table) Cluster(name string) *catalog.Cluster { return t.clusters.byName[name] }

// Names gives the names of the present clusters, sorted. The caller must not change it.
func (t *Table) Names() []string { return t.clusters.names }

// Clusters gives the present clusters, in no order.
func (t *Table) Clusters() iter.Seq[*catalog.Cluster] { return maps.Values(t.clusters.byName) }

// Find gives the id of an endpoint, if it has one: it is checked, or excluded and its
// last verdict is held.
func (t *Table) Find(hash health.Hash) (id health.EndpointID, ok bool) {
	id, ok = t.rows.ids[hash]
	return id, ok
}

// At gives the cluster of an id and the index in its Checked.Endpoints; nil if the id is
// not in use, catalog.None if the endpoint is not checked.
func (t *Table) At(id health.EndpointID) (k *catalog.Cluster, index int) {
	r := &t.rows.all[id]
	return r.cluster, r.index
}

// Ruling is what hdsd holds to be true of an endpoint.
type Ruling struct {
	Health   health.Status
	Judged   bool      // there is or was a verdict of the votes
	Override *Override // the one that decides; nil if the votes do
	Since    time.Time // when it began or ended; zero if there never was one
}

// Ruling gives what hdsd holds to be true of an id in use.
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

// HealthOf gives what hdsd holds to be true of an endpoint.
func (t *Table) HealthOf(e *catalog.Endpoint) health.Status {
	if id, ok := t.Find(e.Hash); ok {
		return t.rows.all[id].health()
	}
	return health.Unknown
}

// Frozen gives the freeze; nil for none.
func (t *Table) Frozen() *store.Freeze { return t.publishing.freeze }

// Overrides gives the overrides in force, in no order.
func (t *Table) Overrides() []Override {
	all := make([]Override, 0, len(t.overrides.all))
	for _, o := range t.overrides.all {
		all = append(all, *o)
	}
	return all
}

// Counts gives the numbers of endpoints with an id, by their health.
func (t *Table) Counts() Counts { return t.rows.counts }

// Len is the number of endpoints with an id.
func (t *Table) Len() int { return len(t.rows.ids) }

// Quarantined is the number of clusters and endpoints that ought to be checked and are
// not.
func (t *Table) Quarantined() int { return t.clusters.quarantined }

// Shadowed is the number of clusters with checked endpoints that are in shadow mode.
func (t *Table) Shadowed() int { return t.clusters.shadowed }
