package hds

import (
	"iter"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
)

// plan is what reports on one sent specifier should look like. It does not change
// once made, except for the indexes.
type plan struct {
	seq       uint64 // counts the specifiers of a session, from 1
	spec      *specifier.Specifier
	order     []health.EndpointID // entry by entry
	addresses []string            // of each entry, canonical; spec's own, as a rule
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

// newPlan gives the plan of a specifier. It leaves out entries that the message
// lists beyond the order; specifier.Build makes none.
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
	where := envoyaddr.Locality(l)
	// Like Envoy, keep only the three names of a locality.
	encoded, _ := proto.Marshal(envoyaddr.LocalityMessage(where))
	return group{cluster: cluster, locality: where, encoded: encoded, end: end}
}

// see takes note of the address of the i-th entry.
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

// dropIndexes forgets what is made again when it is needed.
func (p *plan) dropIndexes() { p.byID, p.byKey, p.byAddress = nil, nil, nil }

func (p *plan) ids() map[health.EndpointID]int {
	if p.byID == nil {
		p.byID = p.index()
	}
	return p.byID
}

// index gives where the entry of each id is.
func (p *plan) index() map[health.EndpointID]int {
	all := make(map[health.EndpointID]int, len(p.order))
	for i, id := range p.order {
		all[id] = i
	}
	return all
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
			if _, twice := p.byAddress[address]; twice {
				i = -1
			}
			p.byAddress[address] = i
		}
	}
	return p.byAddress
}

// place is where a checker finds an endpoint.
type place struct{ cluster, address string }

// places gives those of the entries, in order.
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

// hasAllOf reports whether p lists all that another plan lists, in the same order. Few plans
// take something away.
func (p *plan) hasAllOf(other *plan) bool {
	next := 0
	for i, id := range p.order {
		if next < len(other.order) && other.order[next] == id && other.addresses[next] == p.addresses[i] {
			next++
		}
	}
	return next == len(other.order)
}

// plans are those that reports may follow: the newest one that a report has
// matched, and all sent since. They do not change once made.
type plans []*plan

// maxPlans bounds how many plans are kept for a checker that accepts none.
const maxPlans = 8

// current gives the last one; nil where nothing was sent yet.
func (l plans) current() *plan {
	if len(l) == 0 {
		return nil
	}
	return l[len(l)-1]
}

// from gives the plans from a seq on.
func (l plans) from(seq uint64) plans {
	return slices.DeleteFunc(slices.Clone(l), func(p *plan) bool { return p.seq < seq })
}

// numbered gives the one with this seq, which is among them.
func (l plans) numbered(seq uint64) *plan {
	for _, p := range l {
		if p.seq == seq {
			return p
		}
	}
	return nil
}

// gone gives what others list, but the last one does not.
func (l plans) gone() map[place]bool {
	gone, current := map[place]bool{}, l.current()
	var has map[health.EndpointID]int // where current has each
	for _, old := range l {
		if current.hasAllOf(old) {
			continue
		}
		if has == nil {
			has = current.index()
		}
		i := 0
		for e := range old.places() {
			if at, ok := has[old.order[i]]; !ok || current.addresses[at] != old.addresses[i] {
				gone[e] = true
			}
			i++
		}
	}
	if len(gone) > 0 {
		for e := range current.places() {
			delete(gone, e) // under another id
		}
	}
	return gone
}

// with gives the plans after p is sent, where accepted is the seq of the newest one
// matched.
func (l plans) with(p *plan, accepted uint64) plans {
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
