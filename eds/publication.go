package eds

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/publish"
)

// publication holds what is published: the resources of both types, and the health
// that goes into assignments. Its tables notify subscriptions of changes.
type publication struct {
	clusters    *table
	assignments *table

	incomplete atomic.Bool // unpublished resources may exist

	start   time.Time    // now counts from here
	changed atomic.Int64 // time of the last change, by now

	mu     sync.Mutex // held while publishing, and while a variant is made
	ledger ledger     // guarded by mu
}

func newPublication(o *Options) *publication {
	p := &publication{
		clusters:    newTable(resourcev3.ClusterType, true, o.TTL[resourcev3.ClusterType]),
		assignments: newTable(resourcev3.EndpointType, false, o.TTL[resourcev3.EndpointType]),
		ledger:      newLedger(),
		start:       time.Now(),
	}
	if o.Authority != "" {
		p.assignments.prefix = aliasPrefix(o.Authority, resourcev3.EndpointType)
		p.clusters.prefix, p.clusters.services = aliasPrefix(o.Authority, resourcev3.ClusterType), p.assignments.prefix
	}
	p.incomplete.Store(o.Incomplete)
	return p
}

// tables returns the tables in the order in which changes are sent.
func (p *publication) tables() [2]*table { return [2]*table{p.clusters, p.assignments} }

// table returns the table of a type, nil if the type is not served.
func (p *publication) table(typeURL string) *table {
	for _, t := range p.tables() {
		if t.typeURL == typeURL {
			return t
		}
	}
	return nil
}

// now returns the time since the start, never 0.
func (p *publication) now() int64 { return int64(time.Since(p.start)) + 1 }

// peak returns the largest number of resources of a type so far.
func (p *publication) peak() int {
	return int(max(p.clusters.peak.Load(), p.assignments.peak.Load()))
}

// update publishes changes. It returns an error for each resource that cannot be encoded, and
// keeps its previous version.
func (p *publication) update(u *publish.Update) (unencodable []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Store(p.now())

	var changed []*slot
	for i := range u.Assignments {
		slot, err := p.setAssignment(&u.Assignments[i])
		if err != nil {
			unencodable = append(unencodable, err)
			continue
		}
		changed = append(changed, slot)
	}
	for _, c := range u.Clusters {
		r, err := newCluster(c)
		if err != nil {
			unencodable = append(unencodable, err)
			continue
		}
		p.clusters.set(c.Message.GetName(), r).notify()
	}
	for _, slot := range changed {
		slot.notify()
		p.resetVariants(slot)
	}
	for _, name := range u.RemovedClusters {
		p.clusters.remove(name)
	}
	for _, name := range u.RemovedAssignments {
		p.ledger.remove(name)
		if slot := p.assignments.remove(name); slot != nil {
			p.resetVariants(slot)
		}
	}
	return unencodable
}

func (p *publication) setAssignment(a *publish.Assignment) (*slot, error) {
	r, endpoints, err := newAssignment(a, p.ledger.health.Get)
	if err != nil {
		return nil, err
	}
	for _, v := range p.assignments.variants(a.Name) {
		v.dropZoneHealth()
	}
	slot := p.assignments.set(a.Name, r)
	p.ledger.put(a.Name, slot, endpoints)
	return slot, nil
}

// setHealth publishes the health of endpoints.
func (p *publication) setHealth(changes []publish.Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Store(p.now())
	var variants []*slot
	changed := p.ledger.set(changes, func(place place, changed bool) { variants = p.updateVariants(variants, place, changed) })
	for _, slot := range changed {
		slot.notify()
	}
	notifyOnce(variants)
}

// setZoneHealth publishes the health of endpoints as a zone sees it.
func (p *publication) setZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Store(p.now())
	var touched []*slot
	for _, c := range set {
		if p.ledger.setZone(zone, c) {
			touched = p.updateZone(touched, zone, c.ID)
		}
	}
	for _, id := range unset {
		if p.ledger.unsetZone(zone, id) {
			touched = p.updateZone(touched, zone, id)
		}
	}
	notifyOnce(touched)
}

// complete makes the publication complete: resources that are not published do not exist. It
// calls done unless it was complete before.
func (p *publication) complete(done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.incomplete.Swap(false) {
		done()
	}
}

// watch makes a subscription watch a key: a name, or a name and the choice of a variant.
func (p *publication) watch(u *subscription, key string) *watch {
	name, choice, located := strings.Cut(key, separator)
	if !located && !u.table.isAlias(name) {
		choice = u.choice
	}
	if choice == "" {
		w, _ := u.table.watch(name, "", located, u)
		return w
	}
	p.mu.Lock() // the variant has its zone's health from the start
	defer p.mu.Unlock()
	w, created := u.table.watch(name, choice, located, u)
	if created {
		p.ledger.fill(w.slot)
	}
	return w
}

// watchAll makes a subscription watch everything, and visits every present watch.
func (p *publication) watchAll(u *subscription, visit func(*watch)) {
	if u.choice == "" {
		u.table.watchAll(u, visit)
		return
	}
	p.mu.Lock() // as in watch
	defer p.mu.Unlock()
	if u.table.watchAll(u, visit) {
		zone, _ := zoneOf(u.choice)
		for id := range p.ledger.zones[zone] {
			p.updateZone(nil, zone, id)
		}
	}
}
