package assign

import (
	"fmt"
	"testing"

	"hdsd/health"
)

// TestZonesAreForgotten when no endpoint and no checker is there any more: what
// an Apply costs does not grow with the names that were ever used.
func TestZonesAreForgotten(t *testing.T) {
	named := func(i int) health.Locality {
		return health.Locality{Region: fmt.Sprint("r", i), Zone: fmt.Sprint("z", i)}
	}
	p := New(Options{})
	class := p.Class(Class{})
	e := Endpoint{ID: 1, ClusterHash: 7, Hash: 8, Class: class, Redundancy: 7, Zones: OwnFirst, Regions: OwnFirst}
	p.Apply(Change{Join: []health.Checker{{ID: "stays", Locality: named(0)}}})
	for i := range 1000 {
		e.Locality = named(3 * i)
		p.Apply(Change{Upsert: []Endpoint{e}, Join: []health.Checker{{ID: "moves", Locality: named(3*i + 1)}, {ID: fmt.Sprint(i), Locality: e.Locality}}})
		if n := p.Load(fmt.Sprint(i)); n != 1 {
			t.Fatalf("round %d: %d checks at the checker in the endpoint's own zone, want 1", i, n)
		}
		p.Apply(Change{Leave: []string{fmt.Sprint(i)}})
		if n := p.Stats().UnderReplicated; n != 1 {
			t.Fatalf("round %d: %d endpoints have too few checkers, want 1", i, n)
		}
	}
	if zones, regions := p.zones.Len(), p.zones.Regions(); zones > 8 || regions > 8 {
		t.Errorf("room for %d zones and %d regions, where there are 3", zones, regions)
	}
	for _, k := range p.kinds.inOrder() {
		if n := len(k.counts); n > 9 {
			t.Errorf("a kind counts endpoints of %d zones", n)
		}
	}
}

// TestKindsAreForgotten when no endpoint wants the like any more.
func TestKindsAreForgotten(t *testing.T) {
	p := New(Options{})
	class := p.Class(Class{})
	p.Apply(Change{Join: []health.Checker{{ID: "a"}, {ID: "b"}}})
	e := Endpoint{ID: 1, ClusterHash: 7, Hash: 8, Class: class}
	for i := range 1000 {
		e.Rate = int64(i)
		p.Apply(Change{Upsert: []Endpoint{e}})
		if n := p.Stats().Checks; n != 1 {
			t.Fatalf("round %d: %d checks", i, n)
		}
	}
	if room, n := p.kinds.len(), len(p.kinds.inOrder()); room > 3 || n != 1 {
		t.Errorf("room for %d kinds, %d of them known, where there is 1", room, n)
	}
}
