package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// makeAssignments rebuilds the changed assignments.
func (e *edit) makeAssignments() {
	u := &e.decision.Update
	for _, service := range slices.Sorted(maps.Keys(e.services)) {
		if a, ok := e.assignment(service); ok {
			u.Assignments = append(u.Assignments, a)
		} else {
			u.RemovedAssignments = append(u.RemovedAssignments, service)
		}
	}
	clear(e.services)
}

// assignment builds the assignment of a name, if there is one. If several clusters share it,
// each endpoint gets the worst of their verdicts. Endpoints that hdsd does not decide pass
// through.
func (t *Table) assignment(service string) (publish.Assignment, bool) {
	a := publish.Assignment{Name: service}
	var first *catalog.Cluster
	for _, k := range t.clusters.byService[service] {
		switch {
		case k.Assignment == nil:
			continue
		case first == nil:
			first = k
			a.Wire, a.Overruled = t.wireOf(service, k), k.UpstreamHealth == configv1.UpstreamHealth_OURS
			a.IDs = make([][][]health.EndpointID, len(k.CheckedIndex))
			for i, indices := range k.CheckedIndex {
				a.IDs[i] = make([][]health.EndpointID, len(indices))
			}
		case !k.Assignment.Equal(first.Assignment):
			continue // the sources' catalog has no two such clusters
		}
		t.rows.addTo(a.IDs, k, t.publishing.decides(k))
	}
	return a, first != nil
}

// addTo adds the ids of a cluster's endpoints whose health hdsd decides.
func (t *rows) addTo(ids [][][]health.EndpointID, k *catalog.Cluster, decides func(*row) bool) {
	checked := t.checked[k]
	for i, indices := range k.CheckedIndex {
		for j, index := range indices {
			if index == catalog.None {
				continue
			}
			if decides(&t.byID[checked[index]]) {
				ids[i][j] = append(ids[i][j], checked[index])
			}
		}
	}
	for _, e := range k.Excluded {
		if id, ok := t.ids[e.Hash]; ok && e.Index != catalog.None && decides(&t.byID[id]) {
			ids[e.Locality][e.Index] = append(ids[e.Locality][e.Index], id)
		}
	}
}

// republished returns a decision that publishes everything. The EDS server sends only
// differences.
func (t *Table) republished() Decision {
	e := t.edit(time.Time{}) // it records nothing
	d := &e.decision
	for _, name := range slices.Sorted(maps.Keys(t.clusters.byName)) {
		k := t.clusters.byName[name]
		e.services[k.Source.ServiceName] = true
		if form := t.form(k); form.Message != nil {
			d.Update.Clusters = append(d.Update.Clusters, form)
		}
	}
	for id := range t.rows.byID {
		if r := &t.rows.byID[id]; r.cluster != nil {
			e.setHealth(health.EndpointID(id), r)
		}
	}
	e.makeAssignments()
	if t.publishing.freeze.Publication() == log.Sources {
		d.Health, d.Withdrawn = nil, d.Health // no verdict may show in between
	}
	return e.decision
}
