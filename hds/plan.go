package hds

import (
	"iter"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/specifier"
	"hdsd/health"
)

// plan is the expected content of reports on one sent specifier. It does not change once made,
// except for the indexes.
type plan struct {
	seq       uint64 // counts the specifiers of a session, from 1
	spec      *specifier.Specifier
	order     []health.EndpointID // entry by entry
	addresses []string            // of each entry, canonical; usually spec's own
	size      int                 // of all entries' Endpoints as Envoy writes them
	groups    []group             // the entries by cluster and locality, in order; none is empty

	// Made when first needed, and dropped when a report matches the plan. Only the
	// goroutine that receives uses them.
	byID      map[health.EndpointID]int
	byKey     map[health.Endpoint]int
	byAddress map[string]int // -1 where there are several
}

// group is a run of entries of one cluster and locality.
type group struct {
	cluster  string // as the specifier names it
	locality health.Locality
	encoded  []byte // the locality as Envoy writes it
	end      int    // index after its last entry
}

// newPlan returns the plan of a specifier. It omits entries that the message lists beyond the
// order; specifier.Build makes none.
func newPlan(seq uint64, spec *specifier.Specifier) *plan {
	entries := min(len(spec.Order), len(spec.Addresses))
	p := &plan{seq: seq, spec: spec, order: spec.Order[:entries], addresses: spec.Addresses[:entries]}
	next := 0
	for _, cluster := range spec.Clusters {
		for _, l := range cluster.Localities {
			size := min(l.Entries, entries-next)
			if size == 0 {
				continue
			}
			for range size {
				p.see(next)
				next++
			}
			p.groups = append(p.groups, newGroup(cluster.Head.GetClusterName(), l.Locality, next))
		}
	}
	p.order, p.addresses = p.order[:next], p.addresses[:next]
	return p
}

func newGroup(cluster string, l *corev3.Locality, end int) group {
	locality := envoy.Locality(l)
	// Like Envoy, keep only the three names of a locality.
	encoded, _ := proto.Marshal(envoy.LocalityMessage(locality))
	return group{cluster: cluster, locality: locality, encoded: encoded, end: end}
}

// see records the address of the i-th entry.
func (p *plan) see(i int) {
	var room [longestEndpoint]byte
	encoded, canonical := appendEndpoint(room[:0], p.addresses[i])
	p.size += len(encoded)
	if canonical == p.addresses[i] {
		return
	}
	if &p.addresses[0] == &p.spec.Addresses[0] {
		p.addresses = slices.Clone(p.addresses)
	}
	p.addresses[i] = canonical
}

// dropIndexes drops the indexes, which are rebuilt when needed.
func (p *plan) dropIndexes() { p.byID, p.byKey, p.byAddress = nil, nil, nil }

func (p *plan) ids() map[health.EndpointID]int {
	if p.byID == nil {
		p.byID = p.index()
	}
	return p.byID
}

// index returns the index of each id's entry.
func (p *plan) index() map[health.EndpointID]int {
	byID := make(map[health.EndpointID]int, len(p.order))
	for i, id := range p.order {
		byID[id] = i
	}
	return byID
}

func (p *plan) keys() map[health.Endpoint]int {
	if p.byKey == nil {
		p.byKey = make(map[health.Endpoint]int, len(p.order))
		i := 0
		for _, g := range p.groups {
			for ; i < g.end; i++ {
				p.byKey[health.Endpoint{Cluster: g.cluster, Locality: g.locality, Address: p.addresses[i]}] = i
			}
		}
	}
	return p.byKey
}

func (p *plan) uniqueAddresses() map[string]int {
	if p.byAddress == nil {
		p.byAddress = make(map[string]int, len(p.order))
		for i, address := range p.addresses {
			if _, duplicate := p.byAddress[address]; duplicate {
				i = -1
			}
			p.byAddress[address] = i
		}
	}
	return p.byAddress
}

// place is the cluster and address of an endpoint.
type place struct{ cluster, address string }

// places yields the places of the entries, in order.
func (p *plan) places() iter.Seq[place] {
	return func(yield func(place) bool) {
		i := 0
		for _, g := range p.groups {
			for ; i < g.end; i++ {
				if !yield(place{g.cluster, p.addresses[i]}) {
					return
				}
			}
		}
	}
}

// hasAllOf reports whether p lists all entries of another plan, in the same order. Few plans
// remove any.
func (p *plan) hasAllOf(other *plan) bool {
	next := 0
	for i, id := range p.order {
		if next < len(other.order) && other.order[next] == id && other.addresses[next] == p.addresses[i] {
			next++
		}
	}
	return next == len(other.order)
}

// plans are those that reports may follow: the newest matched one, and all sent since. They do
// not change once made.
type plans []*plan

// maxPlans bounds the plans kept for a checker that accepts none.
const maxPlans = 8

// current returns the last plan; nil before the first.
func (l plans) current() *plan {
	if len(l) == 0 {
		return nil
	}
	return l[len(l)-1]
}

// tail returns the plans from a seq on.
func (l plans) tail(seq uint64) plans {
	return slices.DeleteFunc(slices.Clone(l), func(p *plan) bool { return p.seq < seq })
}

// numbered returns the plan with this seq, which must be present.
func (l plans) numbered(seq uint64) *plan {
	for _, p := range l {
		if p.seq == seq {
			return p
		}
	}
	return nil
}

// removed returns the places that earlier plans list, but the last one does not.
func (l plans) removed() map[place]bool {
	removed, current := map[place]bool{}, l.current()
	var currentIndex map[health.EndpointID]int // index in current of each entry
	for _, old := range l {
		if current.hasAllOf(old) {
			continue
		}
		if currentIndex == nil {
			currentIndex = current.index()
		}
		i := 0
		for e := range old.places() {
			if index, ok := currentIndex[old.order[i]]; !ok || current.addresses[index] != old.addresses[i] {
				removed[e] = true
			}
			i++
		}
	}
	if len(removed) > 0 {
		for e := range current.places() {
			delete(removed, e) // under another id
		}
	}
	return removed
}

// add returns the plans after p is sent; accepted is the seq of the newest matched plan.
func (l plans) add(p *plan, accepted uint64) plans {
	next := make(plans, 0, len(l)+1)
	for _, old := range l {
		if old.seq >= accepted {
			next = append(next, old)
		}
	}
	if len(next) == maxPlans {
		next = append(next[:1], next[2:]...) // reports may still follow the first
	}
	return append(next, p)
}
