package assign_test

import (
	"fmt"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// crammed is a fleet that can do about four fifths of the checks,
// and where reach, rare abilities and zone policies leave little choice.
func crammed(endpointCount, checkerCount int) (classes []assign.Class, all []assign.Endpoint, fleet []health.Checker) {
	const zones = 4
	fleet = checkers(checkerCount, zones)
	for i := range fleet {
		fleet[i].MaxChecksPerSecond = float64(endpointCount) * 3 / 5 / float64(checkerCount) * 4 / 5
		fleet[i].Metadata = map[string]string{"vpc": []string{"blue", "green", "red"}[i/zones%3]}
		if i%5 == 0 {
			fleet[i].Abilities = health.Abilities{health.HTTP: {}, health.TCP: {}, health.Redis: {}}
		}
	}
	reach := func(vpc string) *health.Reach { return &health.Reach{Metadata: map[string]string{"vpc": vpc}} }
	classes = []assign.Class{
		{}, {Reach: reach("blue")}, {Reach: reach("green")}, {Needs: []health.Ability{health.Redis}},
		{Reach: &health.Reach{Localities: []health.Locality{zoneName(0), zoneName(1)}}},
	}
	all = cost(endpoints(endpointCount, zones, 0, 3), 5)
	for i := range all {
		all[i].Class = assign.ClassID(uint64(all[i].ClusterHash) % uint64(len(classes)))
		all[i].Zones = []assign.Placement{assign.Spread, assign.OwnOnly, assign.OwnFirst}[uint64(all[i].ClusterHash)>>8%3]
	}
	return classes, all, fleet
}

func BenchmarkCrammed(b *testing.B) {
	for _, s := range []size{{900, 32, 4}, {7_200, 32, 4}, {50_000, 32, 4}, {200_000, 500, 4}} {
		classes, all, fleet := crammed(s.endpoints, s.checkers)
		var p *assign.Planner
		cold := func() {
			p = assign.New(assign.Options{})
			for _, c := range classes {
				p.Class(c)
			}
			p.Apply(assign.Change{Upsert: all, Join: fleet})
		}
		report := func(b *testing.B) {
			st := p.Stats()
			b.ReportMetric(float64(st.Checks)/float64(3*len(all))*100, "%placed")
			b.ReportMetric(float64(st.Uncheckable), "uncheckable")
			b.ReportMetric(float64(st.Units), "units")
		}
		b.Run(fmt.Sprintf("cold/%v", s), func(b *testing.B) {
			for b.Loop() {
				cold()
			}
			report(b)
		})
		for _, ch := range []struct {
			name     string
			do, undo assign.Change
		}{
			{"leave", assign.Change{Leave: names(fleet[7:8])}, assign.Change{Join: fleet[7:8]}},
			{"join", assign.Change{Join: fleet[7:8]}, assign.Change{Leave: names(fleet[7:8])}},
			{"endpoint", assign.Change{Remove: []health.EndpointID{all[99].ID}}, assign.Change{Upsert: all[99:100]}},
		} {
			b.Run(fmt.Sprintf("%s/%v", ch.name, s), func(b *testing.B) {
				cold()
				if ch.name == "join" {
					p.Apply(ch.undo)
				}
				for b.Loop() {
					p.Apply(ch.do)
					b.StopTimer()
					p.Apply(ch.undo)
					b.StartTimer()
				}
				report(b)
			})
		}
	}
}
