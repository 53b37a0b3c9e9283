package relay

import (
	"slices"
	"sync"
	"sync/atomic"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy"
	"hdsd/health"
	"hdsd/publish"
)

// subject is the kind and the name of resources.
type subject struct {
	kind kind
	name string
}

// book has the published health. It gets the same decisions as eds.Server.
type book struct {
	changed func([]subject) // called with changed resources, without a lock
	stamp   atomic.Uint64   // number of changes; written with mu held

	mu             sync.RWMutex // guards the fields below
	enabled        bool
	pages          uint64 // number of changes of on
	statuses       publish.Statuses
	sheets         map[string]*sheet              // by hdsd's name of the cluster
	readers        map[health.EndpointID][]string // hdsd's names of the clusters with an endpoint
	clusters       map[string]bool                // by hdsd's name of a cluster: hdsd checks it
	entries        map[string][]versionEntry      // versions, by cluster
	entryByName    map[string]versionEntry        // the same versions, by hdsd's name
	namesBySubject map[subject][]string           // hdsd's names of the versions that decide the health of resources
	nameByVersion  map[version]string             // hdsd's name of a version; empty: hdsd does not check it
	changes        uint64                         // number of changes of editions
	edition        map[subject]uint64             // of resources with health: the number of the latest change
}

// sheet says which verdicts decide the health of the endpoints of an assignment.
type sheet struct {
	overruled bool
	ids       map[publish.Key][]health.EndpointID // empty: the endpoint is not checked
	addresses map[string][]health.EndpointID      // of all localities
}

// verdicts returns the ids of the verdicts that decide an endpoint, and whether the sheet has it. An endpoint
// in a new locality keeps the verdicts of its address until hdsd knows the locality.
func (s *sheet) verdicts(key publish.Key) (ids []health.EndpointID, known bool) {
	if s == nil {
		return nil, false
	}
	if ids, known = s.ids[key]; known {
		return ids, true
	}
	ids, known = s.addresses[key.Address]
	return ids, known
}

func newBook(enabled bool) *book {
	return &book{
		enabled: enabled, sheets: map[string]*sheet{}, readers: map[health.EndpointID][]string{}, entries: map[string][]versionEntry{}, entryByName: map[string]versionEntry{}, namesBySubject: map[subject][]string{}, nameByVersion: map[version]string{}, clusters: map[string]bool{}, edition: map[subject]uint64{},
	}
}

// Update takes in an update, as eds.Server does.
func (b *book) Update(u publish.Update) {
	b.mu.Lock()
	var touched []subject
	for i := range u.Assignments {
		a := &u.Assignments[i]
		b.forget(a.Name)
		b.sheets[a.Name] = b.newSheet(a)
		touched = append(touched, b.subjects(a.Name)...)
	}
	for _, c := range u.Clusters {
		if checked, known := b.clusters[c.Name]; !known || checked != c.Checked {
			b.clusters[c.Name] = c.Checked
			touched = append(touched, b.subjects(c.Name)[1])
		}
	}
	for _, name := range u.RemovedClusters {
		delete(b.clusters, name)
		touched = append(touched, b.subjects(name)[1])
	}
	for _, name := range u.RemovedAssignments {
		b.forget(name)
		delete(b.sheets, name)
		touched = append(touched, b.subjects(name)...)
	}
	b.announce(touched)
}

// announce gives resources another edition, releases the lock, and notifies the streams.
func (b *book) announce(touched []subject) {
	for _, s := range touched {
		b.raise(s)
	}
	b.notify(touched)
}

// raise gives a resource another edition.
func (b *book) raise(s subject) {
	if b.changes++; b.knows(s) {
		b.edition[s] = b.changes
	} else {
		delete(b.edition, s)
	}
}

// renew notifies the streams of resources whose edition stays: other clusters may decide their health now, or
// hdsd has decided whether to check them.
func (b *book) renew(touched []subject) {
	b.mu.Lock()
	b.notify(touched)
}

// notify releases the lock, and notifies the streams of changed resources.
func (b *book) notify(touched []subject) {
	if len(touched) > 0 {
		b.stamp.Add(1)
	}
	b.mu.Unlock()
	if len(touched) > 0 {
		b.changed(touched)
	}
}

// knows reports whether the book has health for a resource.
func (b *book) knows(s subject) bool {
	return slices.ContainsFunc(b.namesOf(s), func(name string) bool {
		_, cluster := b.clusters[name]
		return b.sheets[name] != nil || cluster && s.kind == clusters
	})
}

func (b *book) newSheet(a *publish.Assignment) *sheet {
	s := &sheet{overruled: a.Overruled, ids: map[publish.Key][]health.EndpointID{}, addresses: map[string][]health.EndpointID{}}
	for l, group := range a.Message().GetEndpoints() {
		for e, endpoint := range group.GetLbEndpoints() {
			key := keyOf(group, endpoint)
			ids := a.Deciding(l, e)
			if len(ids) == 0 {
				s.ids[key] = append(s.ids[key], nil...) // it is not checked
				continue
			}
			s.ids[key] = ids
			s.addresses[key.Address] = append(s.addresses[key.Address], ids...)
			for _, id := range ids {
				b.readers[id] = append(b.readers[id], a.Name)
			}
		}
	}
	return s
}

func keyOf(group *endpointv3.LocalityLbEndpoints, endpoint *endpointv3.LbEndpoint) publish.Key {
	return publish.Key{Locality: envoy.Locality(group.GetLocality()), Address: envoy.Address(endpoint.GetEndpoint().GetAddress())}
}

// forget removes an assignment from the readers of its endpoints.
func (b *book) forget(name string) {
	old := b.sheets[name]
	if old == nil {
		return
	}
	for _, ids := range old.ids {
		for _, id := range ids {
			left := b.readers[id][:0]
			for _, user := range b.readers[id] {
				if user != name {
					left = append(left, user)
				}
			}
			if b.readers[id] = left; len(left) == 0 {
				delete(b.readers, id)
			}
		}
	}
}

// SetHealth takes in health, as eds.Server does.
func (b *book) SetHealth(changes []publish.Health) {
	b.mu.Lock()
	var touched []subject
	for _, c := range changes {
		if !b.statuses.Set(c) {
			continue
		}
		for _, name := range b.readers[c.ID] {
			touched = append(touched, b.subjects(name)...)
		}
	}
	b.announce(touched)
}

// SetZoneHealth does nothing: through the relay, all zones get the verdict.
func (b *book) SetZoneHealth(health.Locality, []publish.Health, []health.EndpointID) {}

// setEnabled turns health on or off. It reports whether that is a change.
func (b *book) setEnabled(enabled bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.enabled == enabled {
		return false
	}
	b.enabled = enabled
	b.pages++
	b.stamp.Add(1)
	return true
}

// current returns the edition of a resource's health; 0: the book has none. A resource never gets another
// edition twice.
func (b *book) current(s subject) uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.pages<<40 + b.edition[s]
}

// apply puts health into a resource. expected reports, as Server.expects does, whether hdsd will check a
// cluster without endpoints.
func (b *book) apply(x *body, p *panel, own string, expected func() (bool, bool)) ([]byte, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if !b.enabled {
		return x.wire, nil
	}
	verdicts := b.healthOf(b.deciders(x, p), b.namesOf(subject{x.kind, x.name}))
	if x.kind == assignments {
		return publish.OverlayAssignment(x.wire, verdicts)
	}
	checked, undecided := expected()
	if !undecided {
		checked = b.clusters[own]
	}
	return publish.OverlayCluster(x.wire, checked && !x.foreign, verdicts)
}

// healthOf returns the health of endpoints by the verdicts of clusters, by hdsd's names. The worst of their
// verdicts counts, missing ones apart. An endpoint that none of them has yet gets the verdicts of the others.
func (b *book) healthOf(names, fallback []string) publish.HealthOf {
	return func(endpoint publish.Key, stated health.Status) (health.Status, bool) {
		status, decides, overruled, known := b.verdict(names, endpoint)
		if !known && len(names) > 0 {
			status, decides, overruled, _ = b.verdict(fallback, endpoint)
		}
		switch {
		case !decides:
			return stated, false
		case overruled:
			return status, true
		}
		return publish.Combine(status, stated), true
	}
}

// verdict returns the worst verdict of clusters on an endpoint, and whether any of them decides it, is
// overruled, and has it.
func (b *book) verdict(names []string, endpoint publish.Key) (status health.Status, decides, overruled, known bool) {
	for _, name := range names {
		s := b.sheets[name]
		ids, found := s.verdicts(endpoint)
		known = known || found
		if len(ids) == 0 {
			continue
		}
		decides, overruled = true, overruled || s.overruled
		status = publish.Combine(status, publish.Worst(ids, b.statuses.Get))
	}
	return status, decides, overruled, known
}
