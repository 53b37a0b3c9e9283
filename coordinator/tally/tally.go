package tally

import (
	"iter"
	"maps"
	"time"

	"hdsd/coordinator/attention"
	"hdsd/health"
	"hdsd/notify"
)

// These bound the endpoints that are conditions of their own.
const (
	EachCluster = 10
	EachFleet   = 500
)

// smallestZone is the smallest number of endpoints with which a zone can be down as a whole.
const smallestZone = 2

// Endpoint is the state of an endpoint of a checked cluster.
type Endpoint struct {
	Hash       health.Hash
	Key        *health.Endpoint
	Status     health.Status
	Overridden bool
	Gone       bool // no source has it
	Since      time.Time
	Reason     string
}

// Counts holds numbers of clusters by attention.State.
type Counts [attention.Unchecked + 1]int

// Tally counts what is down.
type Tally struct {
	clusters map[string]*cluster
	zones    map[health.Locality]*zone // by region and zone
	counts   Counts
	down     int // zones
	shown    int // endpoints that are conditions of their own
	dirty    map[string]*cluster
	unclean  map[health.Locality]*zone
	follows  func(cluster string) bool // nil: none is followed
	recount  bool                      // the number of zones changed
	effects  Effects

	unchecked map[string]struct{} // clusters with health checks that have no endpoint to check
}

// cluster is the state of a cluster.
type cluster struct {
	endpoints, down, overridden, observed int

	latestNeutral time.Time            // when an endpoint last became neutral
	latest        time.Time            // when one of its endpoints last went down
	marks         map[health.Hash]mark // endpoints that are down or overridden
	neutral       map[health.Hash]bool // endpoints that are neither up nor down: true if without a verdict; nil if empty
	unknown       int                  // neutral endpoints without a verdict
	places        map[health.Locality]int
	state         attention.State
	isDown        bool
	isIdle        bool
	shown         map[health.Hash]health.Endpoint
	hidden        int // as the condition says; 0: there is none

	counted bool // in Counts
}

// mark is an endpoint that is down or overridden.
type mark struct {
	zone             health.Locality
	down, overridden bool
}

// zone is the state of a zone with a name.
type zone struct {
	endpoints, down int
	latest          time.Time
	isDown          bool
}

// New makes an empty Tally.
func New() *Tally {
	return &Tally{
		clusters: map[string]*cluster{}, zones: map[health.Locality]*zone{},
		unchecked: map[string]struct{}{}, dirty: map[string]*cluster{}, unclean: map[health.Locality]*zone{},
	}
}

// Counts returns the numbers of clusters by their state, as of the last Take.
func (t *Tally) Counts() Counts { return t.counts }

// ZonesDown returns the number of zones that are down as a whole, as of the last Take.
func (t *Tally) ZonesDown() int { return t.down }

// Follow sets the clusters that Take counts, and makes the next Take count all of them.
func (t *Tally) Follow(follows func(cluster string) bool) {
	t.follows = follows
	maps.Copy(t.dirty, t.clusters)
}

// SetCluster sets all endpoints of a checked cluster, and the number of those with a believed
// vote.
func (t *Tally) SetCluster(name string, observed int, endpoints iter.Seq[Endpoint]) {
	t.unsetUncheckable(name)
	k := t.clusters[name]
	if k == nil {
		k = &cluster{shown: map[health.Hash]health.Endpoint{}}
		t.clusters[name] = k
	}
	t.clear(k)
	k.observed = observed
	for e := range endpoints {
		locality := zoneOf(e.Key)
		k.setNeutral(&e)
		k.endpoints++
		k.places[locality]++
		if e.Status.Down() || e.Overridden {
			t.mark(k, name, &e)
		}
	}
	for locality, n := range k.places {
		t.grow(locality, n)
	}
	for hash, key := range k.shown {
		if !k.marks[hash].down {
			t.unshow(k, hash, &key)
		}
	}
	t.dirty[name] = k
}

// unsetUncheckable undoes SetUncheckable.
func (t *Tally) unsetUncheckable(name string) {
	if _, known := t.unchecked[name]; !known {
		return
	}
	delete(t.unchecked, name)
	t.counts[attention.Unchecked] = len(t.unchecked)
	t.effects.end(notify.Key{Kind: notify.NotChecked, Cluster: name})
}

// clear forgets the endpoints of a cluster, but not which ones are shown.
func (t *Tally) clear(k *cluster) {
	for _, m := range k.marks {
		if m.down {
			t.lower(m.zone, -1)
		}
	}
	for locality, n := range k.places {
		t.grow(locality, -n)
	}
	k.endpoints, k.down, k.overridden, k.latest = 0, 0, 0, time.Time{}
	k.neutral, k.unknown, k.latestNeutral = nil, 0, time.Time{}
	k.marks, k.places = map[health.Hash]mark{}, map[health.Locality]int{}
}

// Remove forgets a cluster that is removed or not checked any more.
func (t *Tally) Remove(name string) {
	t.unsetUncheckable(name)
	t.removeChecked(name)
}

// removeChecked undoes SetCluster.
func (t *Tally) removeChecked(name string) {
	k := t.clusters[name]
	if k == nil {
		return
	}
	t.clear(k)
	for hash, key := range k.shown {
		t.unshow(k, hash, &key)
	}
	t.judge(name, k)
	delete(t.dirty, name)
	delete(t.clusters, name)
}

// SetEndpoint sets the state of an endpoint. It ignores endpoints of absent clusters.
func (t *Tally) SetEndpoint(e *Endpoint) {
	k := t.clusters[e.Key.Cluster]
	if k == nil {
		return
	}
	if previous, ok := k.marks[e.Hash]; ok {
		t.unmark(k, e.Hash, previous)
	}
	k.setNeutral(e)
	if e.Status.Down() || e.Overridden {
		t.mark(k, e.Key.Cluster, e)
	}
	if key, shown := k.shown[e.Hash]; shown && !e.Status.Down() {
		t.unshow(k, e.Hash, &key)
	}
	t.dirty[e.Key.Cluster] = k
}

// setNeutral records whether an endpoint is neutral: neither up nor down.
func (k *cluster) setNeutral(e *Endpoint) {
	if unknown, ok := k.neutral[e.Hash]; ok {
		if delete(k.neutral, e.Hash); unknown {
			k.unknown--
		}
	}
	if !e.Status.Up() && !e.Status.Down() && !e.Gone {
		if k.neutral == nil {
			k.neutral = map[health.Hash]bool{}
		}
		if k.neutral[e.Hash] = e.Status == health.Unknown; e.Status == health.Unknown {
			k.unknown++
		}
		if e.Since.After(k.latestNeutral) {
			k.latestNeutral = e.Since
		}
	}
	if len(k.neutral) == 0 {
		k.neutral = nil // a map does not shrink
	}
}

// SetUncheckable records a cluster with health checks that has no endpoint to check, with the
// reason.
func (t *Tally) SetUncheckable(name string, now time.Time, reason string) {
	t.removeChecked(name)
	if _, known := t.unchecked[name]; known {
		return
	}
	t.unchecked[name] = struct{}{}
	t.counts[attention.Unchecked] = len(t.unchecked)
	t.effects.begin(notify.Condition{
		Key: notify.Key{Kind: notify.NotChecked, Cluster: name}, Since: now, Command: attention.Cluster(name),
		Text: "cluster " + name + ": " + reason,
	})
}

// SetObserved sets the number of a cluster's endpoints with a believed vote.
func (t *Tally) SetObserved(name string, observed int) {
	if k := t.clusters[name]; k != nil {
		k.observed = observed
		t.dirty[name] = k
	}
}

func (t *Tally) mark(k *cluster, name string, e *Endpoint) {
	m := mark{zone: zoneOf(e.Key), down: e.Status.Down(), overridden: e.Overridden}
	k.marks[e.Hash] = m
	if m.overridden {
		k.overridden++
	}
	if !m.down {
		return
	}
	k.down++
	if e.Since.After(k.latest) {
		k.latest = e.Since
	}
	t.lower(m.zone, 1)
	if z := t.zones[m.zone]; z != nil && e.Since.After(z.latest) {
		z.latest = e.Since
	}
	if _, shown := k.shown[e.Hash]; !shown && len(k.shown) < EachCluster && t.shown < EachFleet {
		k.shown[e.Hash] = *e.Key
		t.shown++
		t.effects.begin(endpointDown(e))
	}
}

func (t *Tally) unmark(k *cluster, hash health.Hash, previous mark) {
	delete(k.marks, hash)
	if previous.overridden {
		k.overridden--
	}
	if previous.down {
		k.down--
		t.lower(previous.zone, -1)
	}
}

func (t *Tally) unshow(k *cluster, hash health.Hash, key *health.Endpoint) {
	delete(k.shown, hash)
	t.shown--
	t.effects.end(endpointKey(key))
}

// grow changes the number of a zone's endpoints.
func (t *Tally) grow(locality health.Locality, n int) {
	if locality.Zone == "" || n == 0 {
		return
	}
	z := t.zones[locality]
	if z == nil {
		z = &zone{}
		t.zones[locality] = z
	}
	if (z.endpoints == 0) != (z.endpoints+n == 0) {
		t.recount = true
	}
	z.endpoints += n
	t.unclean[locality] = z
}

// lower changes the number of a zone's endpoints that are down.
func (t *Tally) lower(locality health.Locality, n int) {
	if locality.Zone == "" {
		return
	}
	z := t.zones[locality]
	if z == nil {
		z = &zone{}
		t.zones[locality] = z
	}
	z.down += n
	t.unclean[locality] = z
}

// zoneOf returns the region and zone of an endpoint.
func zoneOf(key *health.Endpoint) health.Locality {
	return health.Locality{Region: key.Locality.Region, Zone: key.Locality.Zone}
}
