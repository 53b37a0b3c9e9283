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

// subject is what a change of health is about: a resource of a type and name.
type subject struct {
	kind kind
	name string
}

// book knows the health to publish. It follows the decisions as eds.Server does.
type book struct {
	changed func([]subject) // called without a lock when something changed
	stamp   atomic.Uint64   // counts all changes; written with mu held

	mu       sync.RWMutex // guards what follows
	on       bool
	pages    uint64 // counts changes of everything
	statuses publish.Statuses
	sheets   map[string]*sheet              // by hdsd's own name of the cluster
	readers  map[health.EndpointID][]string // the same names of the clusters that an endpoint is in
	clusters map[string]bool                // the same names of clusters: whether hdsd checks it
	made     map[string][]owned             // by cluster: its versions
	owners   map[string]owned               // the same, by hdsd's own name
	names    map[subject][]string           // the same names, by what they decide the health of
	versions map[version]string             // the same names, by version; empty: it is not checked
	changes  uint64                         // of anything
	edition  map[subject]uint64             // of what is known: which of the changes was its latest
}

// sheet is which verdicts decide the endpoints of an assignment.
type sheet struct {
	overruled bool
	ids       map[publish.Key][]health.EndpointID // none of an endpoint that is not checked
	addresses map[string][]health.EndpointID      // the same in any locality
}

// verdicts returns which verdicts decide an endpoint, and whether it is known. One that has moved to a
// locality that hdsd does not know yet keeps those of its address.
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

func newBook(on bool) *book {
	return &book{
		on: on, sheets: map[string]*sheet{}, readers: map[health.EndpointID][]string{}, made: map[string][]owned{}, owners: map[string]owned{}, names: map[subject][]string{}, versions: map[version]string{}, clusters: map[string]bool{}, edition: map[subject]uint64{},
	}
}

// Update takes in what eds.Server publishes.
func (b *book) Update(u publish.Update) {
	b.mu.Lock()
	var touched []subject
	for i := range u.Assignments {
		a := &u.Assignments[i]
		b.forget(a.Name)
		b.sheets[a.Name] = b.sheetOf(a)
		touched = append(touched, b.about(a.Name)...)
	}
	for _, c := range u.Clusters {
		if was, known := b.clusters[c.Name]; !known || was != c.Checked {
			b.clusters[c.Name] = c.Checked
			touched = append(touched, b.about(c.Name)[1])
		}
	}
	for _, name := range u.RemovedClusters {
		delete(b.clusters, name)
		touched = append(touched, b.about(name)[1])
	}
	for _, name := range u.RemovedAssignments {
		b.forget(name)
		delete(b.sheets, name)
		touched = append(touched, b.about(name)...)
	}
	b.announce(touched)
}

// announce counts the changes, releases the lock and tells of them.
func (b *book) announce(touched []subject) {
	for _, s := range touched {
		b.raise(s)
	}
	b.tell(touched)
}

// raise gives the health of a resource another edition.
func (b *book) raise(s subject) {
	if b.changes++; b.knows(s) {
		b.edition[s] = b.changes
	} else {
		delete(b.edition, s)
	}
}

// renew has streams look at resources again: others may decide their health now, or it is known now
// whether hdsd checks them.
func (b *book) renew(touched []subject) {
	b.mu.Lock()
	b.tell(touched)
}

// tell releases the lock, and has streams look at resources again.
func (b *book) tell(touched []subject) {
	if len(touched) > 0 {
		b.stamp.Add(1)
	}
	b.mu.Unlock()
	if len(touched) > 0 {
		b.changed(touched)
	}
}

// knows reports whether there is health for a resource.
func (b *book) knows(s subject) bool {
	return slices.ContainsFunc(b.namesOf(s), func(name string) bool {
		_, cluster := b.clusters[name]
		return b.sheets[name] != nil || cluster && s.kind == clusters
	})
}

func (b *book) sheetOf(a *publish.Assignment) *sheet {
	s := &sheet{overruled: a.Overruled, ids: map[publish.Key][]health.EndpointID{}, addresses: map[string][]health.EndpointID{}}
	for l, group := range a.Message().GetEndpoints() {
		for e, endpoint := range group.GetLbEndpoints() {
			key := keyOf(group, endpoint)
			ids := a.Deciding(l, e)
			if len(ids) == 0 {
				s.ids[key] = append(s.ids[key], nil...) // nobody checks it
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

// forget ends that an assignment uses its endpoints.
func (b *book) forget(name string) {
	before := b.sheets[name]
	if before == nil {
		return
	}
	for _, ids := range before.ids {
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

// SetHealth takes in health that eds.Server publishes.
func (b *book) SetHealth(changes []publish.Health) {
	b.mu.Lock()
	var touched []subject
	for _, c := range changes {
		if !b.statuses.Set(c) {
			continue
		}
		for _, name := range b.readers[c.ID] {
			touched = append(touched, b.about(name)...)
		}
	}
	b.announce(touched)
}

// SetZoneHealth does nothing: through the relay, all zones get the verdict.
func (b *book) SetZoneHealth(health.Locality, []publish.Health, []health.EndpointID) {}

// turn turns health on or off.
func (b *book) turn(on bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on == on {
		return false
	}
	b.on = on
	b.pages++
	b.stamp.Add(1)
	return true
}

// current returns the edition of a resource's health, 0 of what is not known. No other
// edition of a resource comes twice.
func (b *book) current(s subject) uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.pages<<40 + b.edition[s]
}

// apply puts health into a resource. checked says whether hdsd checks a cluster of which
// it has no endpoints yet.
func (b *book) apply(x *body, p *panel, own string, expected func() (bool, bool)) ([]byte, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if !b.on {
		return x.wire, nil
	}
	verdicts := b.healthOf(b.judges(x, p), b.namesOf(subject{x.kind, x.name}))
	if x.kind == assignments {
		return publish.OverlayAssignment(x.wire, verdicts)
	}
	checked, undecided := expected()
	if !undecided {
		checked = b.clusters[own]
	}
	return publish.OverlayCluster(x.wire, checked && !x.elsewhere, verdicts)
}

// healthOf returns the health of endpoints by the verdicts of clusters, given by hdsd's own names.
// Of several, one without a verdict counts for nothing. What none of them knows yet has the verdicts
// of the others.
func (b *book) healthOf(names, others []string) publish.HealthOf {
	return func(endpoint publish.Key, says health.Status) (health.Status, bool) {
		ours, decides, overruled, known := b.verdict(names, endpoint)
		if !known && len(names) > 0 {
			ours, decides, overruled, _ = b.verdict(others, endpoint)
		}
		switch {
		case !decides:
			return says, false
		case overruled:
			return ours, true
		}
		return publish.Combine(ours, says), true
	}
}

// verdict returns what clusters say of an endpoint, whether any decides it and is overruled, and
// whether any has it.
func (b *book) verdict(names []string, endpoint publish.Key) (ours health.Status, decides, overruled, known bool) {
	for _, name := range names {
		s := b.sheets[name]
		ids, found := s.verdicts(endpoint)
		known = known || found
		if len(ids) == 0 {
			continue
		}
		decides, overruled = true, overruled || s.overruled
		ours = publish.Combine(ours, publish.Worst(ids, b.statuses.Get))
	}
	return ours, decides, overruled, known
}
