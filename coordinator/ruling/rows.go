package ruling

import (
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// idRest is how long an id rests before it is used again, so that a vote still under
// way is never taken for one on its successor.
const idRest = time.Minute

// row is an endpoint that is checked, or that is not and keeps its last verdict or is
// overridden.
type row struct {
	hash     health.Hash
	cluster  *catalog.Cluster
	index    int               // in cluster.Checked.Endpoints; catalog.None if it is not checked
	excluded *catalog.Excluded // nil if it is checked

	// The verdict of the votes. The aggregator has it too, but explains it at a cost.
	status health.Status
	judged bool // there is or was a verdict

	overlay *overlay // nil: the votes have always decided
}

// overlay is what stands above the votes on endpoints.
type overlay struct {
	override *Override // nil: nothing any more
	since    time.Time
}

func (r *row) checked() bool { return r.index != catalog.None }

func (r *row) key() health.Endpoint {
	if !r.checked() {
		return r.excluded.Key
	}
	return r.cluster.Checked.Endpoints[r.index].Key
}

// override is the one that decides; nil if the votes do.
func (r *row) override() *Override {
	if r.overlay == nil {
		return nil
	}
	return r.overlay.override
}

// health is what hdsd holds to be true.
func (r *row) health() health.Status {
	if o := r.override(); o != nil {
		return o.Status
	}
	return r.status
}

// untold tells whether hdsd has nothing to say of an endpoint, so that data planes
// get what its source says.
func (r *row) untold() bool {
	return !r.checked() && r.override() == nil && (r.excluded.Disabled || !r.judged)
}

// Counts are numbers of endpoints by their health.
type Counts [health.Degraded + 1]int

// rows gives endpoints dense ids.
type rows struct {
	ids    map[health.Hash]health.EndpointID
	all    []row  // by id; the zero row where the id is not in use
	counts Counts // of the ids in use
	freed  []freed
}

type freed struct {
	id health.EndpointID
	at time.Time
}

// place gives a checked endpoint an id, a new one unless it has one.
func (t *rows) place(k *catalog.Cluster, index int, now time.Time) (id health.EndpointID, isNew, wasChecked bool) {
	hash := k.Hashes[index]
	if id, ok := t.ids[hash]; ok {
		r := &t.all[id]
		wasChecked = r.checked()
		r.cluster, r.index, r.excluded = k, index, nil
		return id, false, wasChecked
	}
	return t.add(row{hash: hash, cluster: k, index: index}, now), true, false
}

// add gives a new row an id.
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

// of gives the row of a hash, if it has one.
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

// overlay puts something, or nothing any more, above the votes.
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

// release frees an id.
func (t *rows) release(id health.EndpointID, now time.Time) {
	r := &t.all[id]
	delete(t.ids, r.hash)
	t.overlay(r, nil)
	t.counts[r.status]--
	*r = row{}
	t.freed = append(t.freed, freed{id, now})
}
