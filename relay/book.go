package relay

import (
	"slices"
	"sync"
	"sync/atomic"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/eds"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/relay/overlay"
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
	statuses []health.Status
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
	ids       map[overlay.Key][]health.EndpointID // none of an endpoint that is not checked
	addresses map[string][]health.EndpointID      // the same in any locality
}

// verdicts returns which verdicts decide an endpoint. One that has moved to a locality that hdsd
// does not know yet keeps those of its address.
func (s *sheet) verdicts(key overlay.Key) []health.EndpointID {
	if s == nil {
		return nil
	}
	if ids, known := s.ids[key]; known {
		return ids
	}
	return s.addresses[key.Address]
}

func newBook(on bool) *book {
	return &book{
		on: on, sheets: map[string]*sheet{}, readers: map[health.EndpointID][]string{}, made: map[string][]owned{}, owners: map[string]owned{}, names: map[subject][]string{}, versions: map[version]string{}, clusters: map[string]bool{}, edition: map[subject]uint64{},
	}
}

// Update takes in what eds.Server publishes.
func (b *book) Update(u eds.Update) {
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
		if b.changes++; b.knows(s) {
			b.edition[s] = b.changes
		} else {
			delete(b.edition, s)
		}
	}
	if len(touched) > 0 {
		b.stamp.Add(1)
	}
	b.mu.Unlock()
	if len(touched) > 0 {
		b.changed(touched)
	}
}

// renew has clusters made again: of these, it is known now whether hdsd checks them.
func (b *book) renew(touched []subject) {
	b.mu.Lock()
	b.announce(touched)
}

// knows reports whether there is health for a resource.
func (b *book) knows(s subject) bool {
	return slices.ContainsFunc(b.namesOf(s), func(name string) bool {
		_, cluster := b.clusters[name]
		return b.sheets[name] != nil || cluster && s.kind == clusters
	})
}

func (b *book) sheetOf(a *eds.Assignment) *sheet {
	s := &sheet{overruled: a.Overruled, ids: map[overlay.Key][]health.EndpointID{}, addresses: map[string][]health.EndpointID{}}
	for l, group := range a.Message().GetEndpoints() {
		for e, endpoint := range group.GetLbEndpoints() {
			key := keyOf(group, endpoint)
			if l >= len(a.IDs) || e >= len(a.IDs[l]) || len(a.IDs[l][e]) == 0 {
				s.ids[key] = append(s.ids[key], nil...) // nobody checks it
				continue
			}
			s.ids[key] = a.IDs[l][e]
			s.addresses[key.Address] = append(s.addresses[key.Address], a.IDs[l][e]...)
			for _, id := range a.IDs[l][e] {
				b.readers[id] = append(b.readers[id], a.Name)
			}
		}
	}
	return s
}

func keyOf(group *endpointv3.LocalityLbEndpoints, endpoint *endpointv3.LbEndpoint) overlay.Key {
	return overlay.Key{Locality: envoyaddr.Locality(group.GetLocality()), Address: envoyaddr.Address(endpoint.GetEndpoint().GetAddress())}
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
func (b *book) SetHealth(changes []eds.Health) {
	b.mu.Lock()
	var touched []subject
	for _, c := range changes {
		if int(c.ID) >= len(b.statuses) {
			b.statuses = append(b.statuses, make([]health.Status, int(c.ID)+1-len(b.statuses))...)
		}
		if b.statuses[c.ID] == c.Status {
			continue
		}
		b.statuses[c.ID] = c.Status
		for _, name := range b.readers[c.ID] {
			touched = append(touched, b.about(name)...)
		}
	}
	b.announce(touched)
}

// SetZoneHealth does nothing: through the relay, all zones get the verdict.
func (b *book) SetZoneHealth(health.Locality, []eds.Health, []health.EndpointID) {}

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
	of := b.healthOf(b.judges(x, p)...)
	if x.kind == assignments {
		return overlay.Assignment(x.wire, of)
	}
	checked, undecided := expected()
	if !undecided {
		checked = b.clusters[own]
	}
	return overlay.Cluster(x.wire, checked && !x.elsewhere, of)
}

// healthOf returns the health of endpoints by the verdicts of clusters, given by hdsd's own names.
// Of several, one without a verdict counts for nothing.
func (b *book) healthOf(names ...string) overlay.Health {
	return func(of overlay.Key, says health.Status) (health.Status, bool) {
		ours, decides, overruled := health.Unknown, false, false
		for _, name := range names {
			s := b.sheets[name]
			ids := s.verdicts(of)
			if len(ids) == 0 {
				continue
			}
			worst := b.status(ids[0])
			for _, id := range ids[1:] {
				worst = health.Worse(worst, b.status(id))
			}
			if decides, overruled = true, overruled || s.overruled; ours == health.Unknown {
				ours = worst
			} else if worst != health.Unknown {
				ours = health.Worse(ours, worst)
			}
		}
		if !decides {
			return says, false
		}
		if overruled {
			return ours, true
		}
		return eds.Combine(ours, says), true
	}
}

func (b *book) status(id health.EndpointID) health.Status {
	if int(id) >= len(b.statuses) {
		return health.Unknown
	}
	return b.statuses[id]
}
