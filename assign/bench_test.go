package assign_test

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

type size struct{ endpoints, checkers, zones int }

var sizes = []size{{100_000, 200, 6}, {1_000_000, 1_000, 6}, {1_000_000, 5_000, 6}}

func (s size) String() string { return fmt.Sprintf("E=%d/C=%d", s.endpoints, s.checkers) }

// planned makes a plan from nothing.
func (s size) planned() (*assign.Planner, []health.Checker) {
	fleet := checkers(s.checkers, s.zones)
	p := assign.New(assign.Options{})
	p.Apply(assign.Change{Upsert: endpoints(s.endpoints, s.zones, p.Class(assign.Class{}), 3), Join: fleet})
	return p, fleet
}

func reportLoad(b *testing.B, p *assign.Planner) {
	st := p.Stats()
	b.ReportMetric(float64(st.MaxLoad)*float64(st.Checkers)/float64(st.Checks), "max/mean")
}

func BenchmarkCold(b *testing.B) {
	for _, s := range sizes {
		all, fleet := endpoints(s.endpoints, s.zones, 0, 3), checkers(s.checkers, s.zones)
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			var p *assign.Planner
			for b.Loop() {
				p = assign.New(assign.Options{})
				p.Class(assign.Class{})
				p.Apply(assign.Change{Upsert: all, Join: fleet})
			}
			reportLoad(b, p)
			b.ReportMetric(float64(p.Stats().Units), "units")
		})
	}
}

// BenchmarkRendezvous is what Cold is compared with: each endpoint's highest
// ranking checkers in distinct zones, its own zone first, nothing bounded.
func BenchmarkRendezvous(b *testing.B) {
	for _, s := range sizes[:2] {
		all, fleet := endpoints(s.endpoints, s.zones, 0, 3), checkers(s.checkers, s.zones)
		b.Run(s.String(), func(b *testing.B) {
			var load []int
			for b.Loop() {
				load = rendezvous(all, fleet)
			}
			b.ReportMetric(float64(slices.Max(load)*len(fleet))/float64(3*len(all)), "max/mean")
		})
	}
}

func rendezvous(all []assign.Endpoint, fleet []health.Checker) []int {
	load, zones := make([]int, len(fleet)), make([][]int, 0)
	zone, name := map[health.Locality]int{}, make([]uint64, len(fleet))
	for i, c := range fleet {
		name[i] = uint64(health.ClusterHash(c.ID))
		if _, ok := zone[c.Locality]; !ok {
			zone[c.Locality] = len(zones)
			zones = append(zones, nil)
		}
		zones[zone[c.Locality]] = append(zones[zone[c.Locality]], i)
	}
	type best struct {
		score   uint64
		checker int
	}
	top := make([]best, len(zones))
	for _, e := range all {
		own := zone[e.Locality]
		for z := range zones {
			top[z] = best{}
			for _, i := range zones[z] {
				hi, lo := bits.Mul64(uint64(e.Hash)^0x9e3779b97f4a7c15, name[i])
				if score := hi ^ lo; score > top[z].score {
					top[z] = best{score, i}
				}
			}
		}
		load[top[own].checker]++
		top[own] = best{}
		for range 2 {
			z := slices.IndexFunc(top, func(t best) bool {
				return t.score == slices.MaxFunc(top, func(a, b best) int { return int(a.score>>1) - int(b.score>>1) }).score
			})
			load[top[z].checker]++
			top[z] = best{}
		}
	}
	return load
}

// events are changes of a fleet, each with what takes it back.
func events(s size, fleet []health.Checker) map[string][2]assign.Change {
	zone := func() (in []health.Checker) {
		for _, c := range fleet {
			if c.Locality == fleet[0].Locality {
				in = append(in, c)
			}
		}
		return in
	}()
	one := fleet[:1]
	fresh := []health.Checker{checker(s.checkers, s.zones)}
	return map[string][2]assign.Change{
		"leave":     {{Leave: names(one)}, {Join: one}},
		"lost":      {{Lost: names(one)}, {Join: one}},
		"join":      {{Join: fresh}, {Leave: names(fresh)}},
		"zone-lost": {{Leave: names(zone)}, {Join: zone}},
		"zone-back": {{Join: zone}, {Leave: names(zone)}},
	}
}

func BenchmarkEvent(b *testing.B) {
	for _, s := range sizes {
		p, fleet := s.planned()
		all := events(s, fleet)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b.Run(name+"/"+s.String(), func(b *testing.B) {
				change := all[name]
				if name == "zone-back" {
					p.Apply(change[1])
				}
				var added, specifiers, times int
				for b.Loop() {
					d := p.Apply(change[0])
					b.StopTimer()
					n, _ := moved(d)
					added, specifiers, times = added+n, specifiers+len(d.Moves), times+1
					p.Apply(change[1])
					b.StartTimer()
				}
				st := p.Stats()
				b.ReportMetric(float64(added)/float64(times)/float64(st.Checks)*float64(st.Checkers), "moved/share")
				b.ReportMetric(float64(specifiers)/float64(times), "specifiers")
				reportLoad(b, p)
				if name == "zone-back" {
					p.Apply(change[0])
				}
			})
		}
	}
}

func BenchmarkUpsertOne(b *testing.B) {
	p, _ := sizes[0].planned()
	e := endpoints(sizes[0].endpoints, sizes[0].zones, 0, 3)[12345]
	for b.Loop() {
		p.Apply(assign.Change{Remove: []health.EndpointID{e.ID}})
		p.Apply(assign.Change{Upsert: []assign.Endpoint{e}})
	}
}
