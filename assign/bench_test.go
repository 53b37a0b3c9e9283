package assign_test

import (
	"fmt"
	"maps"
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

// BenchmarkSettled plans from scratch where endpoints and checkers are known, as
// at the end of a first start.
func BenchmarkSettled(b *testing.B) {
	for _, s := range sizes {
		all, fleet := endpoints(s.endpoints, s.zones, 0, 3), checkers(s.checkers, s.zones)
		b.Run(s.String(), func(b *testing.B) {
			var p *assign.Planner
			for b.Loop() {
				b.StopTimer()
				p = assign.New(assign.Options{})
				p.Class(assign.Class{})
				p.Apply(assign.Change{Settling: true, Upsert: all, Join: fleet})
				b.StartTimer()
				p.Apply(assign.Change{})
			}
			reportLoad(b, p)
		})
	}
}

// events are changes of a fleet, each with the change that undoes it.
func events(s size, fleet []health.Checker) map[string][2]assign.Change {
	zone := func() (in []health.Checker) {
		for _, c := range fleet {
			if c.Locality == fleet[0].Locality {
				in = append(in, c)
			}
		}
		return in
	}()
	one, twentieth := fleet[:1], fleet[:len(fleet)/20]
	fresh := []health.Checker{checker(s.checkers, s.zones)}
	return map[string][2]assign.Change{
		"leave":             {{Leave: names(one)}, {Join: one}},
		"lost":              {{Lost: names(one)}, {Join: one}},
		"doubted":           {{Doubted: names(one)}, {Join: one}},
		"doubted-twentieth": {{Doubted: names(twentieth)}, {Join: twentieth}},
		"join":              {{Join: fresh}, {Leave: names(fresh)}},
		"zone-lost":         {{Leave: names(zone)}, {Join: zone}},
		"zone-back":         {{Join: zone}, {Leave: names(zone)}},
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
