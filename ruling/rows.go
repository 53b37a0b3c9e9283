package ruling

import (
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/health"
)

// idRest is the time before a released id is used again, so that a vote still under way never
// counts for another endpoint.
const idRest = time.Minute

// row is a checked endpoint, or an excluded one with its last verdict or an override.
type row struct {
	hash     health.Hash
	cluster  *catalog.Cluster
	index    int32             // in cluster.Checked.Endpoints; catalog.None if it is not checked
	lacks    tenths            // takeovers: when a checked endpoint began to lack a verdict or a checker; 0: it lacks nothing
	excluded *catalog.Excluded // nil if it is checked

	// The verdict of the votes. The aggregator could explain it, too, at a cost.
	status health.Status
	judged bool // there is or was a verdict

	stranded bool // it is checked, but no checker is able to
	gone     bool // a follower: the sources of the table that decides no longer have it

	refilled tenths // pacing: when its bucket is full again

	overlay *overlay // nil: the votes have decided since the latest verdict
}

// overlay is the override above the votes, with its start.
type overlay struct {
	override *Override // nil: ended
	start    time.Time
}

func (r *row) checked() bool { return r.index != catalog.None }

func (r *row) key() health.Endpoint {
	if !r.checked() {
		return r.excluded.Key
	}
	return r.cluster.Checked.Key(int(r.index))
}

// override returns the override that decides, or nil if the votes do.
func (r *row) override() *Override {
	if r.overlay == nil {
		return nil
	}
	return r.overlay.override
}

// health returns the health that hdsd holds to be true.
func (r *row) health() health.Status {
	if o := r.override(); o != nil {
		return o.Status
	}
	return r.status
}

// isUndecided reports whether there are no checks, no held verdict and no override.
func (r *row) isUndecided() bool {
	return !r.checked() && r.override() == nil && (r.excluded.Disabled || !r.judged)
}

// Counts holds numbers of endpoints, by their health.
type Counts [health.Degraded + 1]int

// rows gives endpoints dense ids.
type rows struct {
	ids    map[health.Hash]health.EndpointID
	byID   []row  // by id; the zero row if the id is not in use
	counts Counts // of rows in use
	freed  []freed

	// checked holds the ids of the checked endpoints of the present clusters, by index: to find
	// one among a million by its hash takes a fifth of a microsecond.
	checked map[*catalog.Cluster][]health.EndpointID
}

type freed struct {
	id         health.EndpointID
	releasedAt time.Time
}

// reserve makes room for the first rows.
func (t *rows) reserve(count int) {
	if len(t.byID) == 0 {
		t.ids, t.byID = make(map[health.Hash]health.EndpointID, count), make([]row, 0, count)
	}
}

// place adds or updates a checked endpoint.
func (t *rows) place(k *catalog.Cluster, index int, now time.Time) (id health.EndpointID, isNew bool) {
	hash := k.Hashes[index]
	if id, ok := t.ids[hash]; ok {
		r := &t.byID[id]
		r.cluster, r.index, r.excluded = k, int32(index), nil
		return id, false
	}
	return t.add(row{hash: hash, cluster: k, index: int32(index)}, now), true
}

// add adds a row and returns its id.
func (t *rows) add(r row, now time.Time) (id health.EndpointID) {
	if len(t.freed) > 0 && now.Sub(t.freed[0].releasedAt) >= idRest {
		id = t.freed[0].id
		t.freed = t.freed[1:]
	} else {
		id = health.EndpointID(len(t.byID))
		t.byID = append(t.byID, row{})
	}
	t.byID[id] = r
	t.ids[r.hash] = id
	t.counts[r.health()]++
	return id
}

// find returns the row of an endpoint, or nil.
func (t *rows) find(hash health.Hash) (id health.EndpointID, r *row) {
	id, ok := t.ids[hash]
	if !ok {
		return 0, nil
	}
	return id, &t.byID[id]
}

// judge sets the verdict of the votes, and whether there is one.
func (t *rows) judge(r *row, status health.Status, judged bool) {
	t.counts[r.health()]--
	r.status, r.judged = status, judged
	t.counts[r.health()]++
}

// overlay sets the override above the votes.
func (t *rows) overlay(r *row, o *overlay) {
	t.counts[r.health()]--
	if previous := r.override(); previous != nil {
		previous.Endpoints--
	}
	r.overlay = o
	if current := r.override(); current != nil {
		current.Endpoints++
	}
	t.counts[r.health()]++
}

// overridden reports whether an override decides any endpoint of a cluster.
func (t *rows) overridden(k *catalog.Cluster) bool {
	return slices.ContainsFunc(t.checked[k], func(id health.EndpointID) bool { return t.byID[id].override() != nil }) ||
		slices.ContainsFunc(k.Excluded, func(e catalog.Excluded) bool { _, r := t.find(e.Hash); return r != nil && r.override() != nil })
}

// release removes a row. Its id rests.
func (t *rows) release(id health.EndpointID, now time.Time) {
	r := &t.byID[id]
	delete(t.ids, r.hash)
	t.overlay(r, nil)
	t.counts[r.status]--
	*r = row{}
	t.freed = append(t.freed, freed{id, now})
}
