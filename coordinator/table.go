package coordinator

import (
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// idRest is how long the id of an endpoint that is gone is kept out of use, so
// that a vote still under way is not taken for one on its successor.
const idRest = time.Minute

// row is an endpoint that is checked, or whose last verdict is held.
type row struct {
	hash    health.Hash
	cluster *catalog.Cluster
	index   int // in cluster.safe.Endpoints; none where it is held
	aside   *catalog.Excluded

	// The verdict of the votes, kept here since the judge also explains it, which costs.
	status health.Status
	judged bool // there is or was a verdict

	ruling *ruling // nil: the votes have always decided
}

// none is the index of an endpoint that is not checked.
const none = catalog.None

func (r *row) key() health.Endpoint {
	if r.index == none {
		return r.aside.Key
	}
	return r.cluster.Checked.Endpoints[r.index].Key
}

// overridden gives the override that decides, nil where the votes do.
func (r *row) overridden() *override {
	if r.ruling == nil {
		return nil
	}
	return r.ruling.by
}

// health is what is held to be true, if anything is.
func (r *row) health() health.Status {
	if o := r.overridden(); o != nil {
		return o.Status
	}
	return r.status
}

// table gives checked endpoints their dense ids.
type table struct {
	ids    map[health.Hash]health.EndpointID
	rows   []row  // by id; the zero row where the id is not in use
	counts counts // of rows in use, by status
	freed  []freed
}

// counts are by status.
type counts [health.Degraded + 1]int

type freed struct {
	id health.EndpointID
	at time.Time
}

func newTable() *table { return &table{ids: map[health.Hash]health.EndpointID{}} }

// place gives an endpoint of a cluster its id, a new one where it had none.
func (t *table) place(k *catalog.Cluster, index int, now time.Time) (id health.EndpointID, isNew bool) {
	hash := k.Hashes[index]
	if id, ok := t.ids[hash]; ok {
		t.rows[id].cluster, t.rows[id].index, t.rows[id].aside = k, index, nil
		return id, false
	}
	return t.add(row{hash: hash, cluster: k, index: index}, now), true
}

// add gives a new row its id.
func (t *table) add(r row, now time.Time) (id health.EndpointID) {
	if len(t.freed) > 0 && now.Sub(t.freed[0].at) >= idRest {
		id = t.freed[0].id
		t.freed = t.freed[1:]
	} else {
		id = health.EndpointID(len(t.rows))
		t.rows = append(t.rows, row{})
	}
	t.rows[id] = r
	t.ids[r.hash] = id
	t.counts[r.health()]++
	return id
}

// judge notes what the votes on an endpoint come to, and whether it is a verdict.
func (t *table) judge(id health.EndpointID, to health.Status, judged bool) {
	row := &t.rows[id]
	t.counts[row.health()]--
	row.status, row.judged = to, judged
	t.counts[row.health()]++
}

// rule puts something, or nothing any more, above the votes on an endpoint.
func (t *table) rule(id health.EndpointID, by *ruling) {
	row := &t.rows[id]
	t.counts[row.health()]--
	if o := row.overridden(); o != nil {
		o.endpoints--
	}
	row.ruling = by
	if o := row.overridden(); o != nil {
		o.endpoints++
	}
	t.counts[row.health()]++
}

// release forgets an endpoint.
func (t *table) release(id health.EndpointID, now time.Time) {
	delete(t.ids, t.rows[id].hash)
	t.rule(id, nil)
	t.counts[t.rows[id].status]--
	t.rows[id] = row{}
	t.freed = append(t.freed, freed{id, now})
}
