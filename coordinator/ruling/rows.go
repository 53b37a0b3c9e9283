package ruling

import (
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// idRest is how long a released id is not used again, so that a vote still under way never
// counts for another endpoint.
const idRest = time.Minute

// row is an endpoint that is checked, or that is excluded and keeps its last verdict or has
// an override.
type row struct {
	hash     health.Hash
	cluster  *catalog.Cluster
	index    int32             // in cluster.Checked.Endpoints; catalog.None if it is not checked
	lacks    tenths            // takeovers: since when it is checked and lacks a verdict or a checker; 0: it does not
	excluded *catalog.Excluded // nil if it is checked

	// The verdict of the votes, which the aggregator would also explain, at a cost.
	status health.Status
	judged bool // there is or was a verdict

	stranded bool // it is checked, and no checker is able to

	refilled tenths // pacing: when its bucket is full again

	overlay *overlay // nil: nothing stood above the votes since the latest verdict
}

// overlay says what stands above the votes, and since when.
type overlay struct {
	override *Override // nil: nothing any more
	since    time.Time
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

// health returns what hdsd holds to be true.
func (r *row) health() health.Status {
	if o := r.override(); o != nil {
		return o.Status
	}
	return r.status
}

// isUndecided reports whether neither checks, nor a held verdict, nor an override say
// anything of an endpoint.
func (r *row) isUndecided() bool {
	return !r.checked() && r.override() == nil && (r.excluded.Disabled || !r.judged)
}

// Counts holds numbers of endpoints, by their health.
type Counts [health.Degraded + 1]int

// rows gives endpoints dense ids.
type rows struct {
	ids    map[health.Hash]health.EndpointID
	all    []row  // by id; the zero row if the id is not in use
	counts Counts // of rows in use
	freed  []freed

	// checked has the ids again, of the checked endpoints of the present clusters, by index. To
	// find one among a million by its hash takes a fifth of a microsecond.
	checked map[*catalog.Cluster][]health.EndpointID
}

type freed struct {
	id health.EndpointID
	at time.Time
}

// reserve makes room for the first rows.
func (t *rows) reserve(count int) {
	if len(t.all) == 0 {
		t.ids, t.all = make(map[health.Hash]health.EndpointID, count), make([]row, 0, count)
	}
}

// place adds or updates a checked endpoint.
func (t *rows) place(k *catalog.Cluster, index int, now time.Time) (id health.EndpointID, isNew bool) {
	hash := k.Hashes[index]
	if id, ok := t.ids[hash]; ok {
		r := &t.all[id]
		r.cluster, r.index, r.excluded = k, int32(index), nil
		return id, false
	}
	return t.add(row{hash: hash, cluster: k, index: int32(index)}, now), true
}

// add adds a row and returns its id.
func (t *rows) add(r row, now time.Time) (id health.EndpointID) {
	if len(t.freed) > 0 && now.Sub(t.freed[0].at) >= idRest {
		id = t.freed[0].id
		t.freed = t.freed[1:]
	} else {
		id = health.EndpointID(len(t.all))
		t.all = append(t.all, row{})
	}
	t.all[id] = r
	t.ids[r.hash] = id
	t.counts[r.health()]++
	return id
}

// of returns the row of an endpoint, or nil.
func (t *rows) of(hash health.Hash) (id health.EndpointID, r *row) {
	id, ok := t.ids[hash]
	if !ok {
		return 0, nil
	}
	return id, &t.all[id]
}

// judge sets the verdict of the votes, and whether there is one.
func (t *rows) judge(r *row, to health.Status, judged bool) {
	t.counts[r.health()]--
	r.status, r.judged = to, judged
	t.counts[r.health()]++
}

// overlay sets what stands above the votes.
func (t *rows) overlay(r *row, o *overlay) {
	t.counts[r.health()]--
	if before := r.override(); before != nil {
		before.Endpoints--
	}
	r.overlay = o
	if after := r.override(); after != nil {
		after.Endpoints++
	}
	t.counts[r.health()]++
}

// overridden reports whether an override decides any endpoint of a cluster.
func (t *rows) overridden(k *catalog.Cluster) bool {
	return slices.ContainsFunc(t.checked[k], func(id health.EndpointID) bool { return t.all[id].override() != nil }) ||
		slices.ContainsFunc(k.Excluded, func(e catalog.Excluded) bool { _, r := t.of(e.Hash); return r != nil && r.override() != nil })
}

// release removes a row. Its id rests.
func (t *rows) release(id health.EndpointID, now time.Time) {
	r := &t.all[id]
	delete(t.ids, r.hash)
	t.overlay(r, nil)
	t.counts[r.status]--
	*r = row{}
	t.freed = append(t.freed, freed{id, now})
}
