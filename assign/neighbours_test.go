package assign_test

import (
	"math/bits"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// The published methods that BenchmarkMethods holds ours against. All keep what
// is asked of ours: three checkers in distinct zones, one of them the endpoint's
// own. They move what hashes into one slice and has one zone together.

// slice is endpoints that move together.
type slice struct {
	hash      uint64
	zone      int
	endpoints []int
}

// slicesOf makes slices of about so many endpoints, by cluster; or of one each.
func slicesOf(all []assign.Endpoint, zones, size int) []slice {
	count := uint64(len(all) / size * zones)
	index := map[[2]uint64]int{}
	var list []slice
	for i := range all {
		slot, _ := bits.Mul64(uint64(all[i].ClusterHash), count/uint64(zones))
		key := [2]uint64{slot, uint64(i % zones)}
		at, ok := index[key]
		if !ok {
			at = len(list)
			index[key] = at
			list = append(list, slice{hash: spread(slot + 1), zone: i % zones})
		}
		list[at].endpoints = append(list[at].endpoints, i)
	}
	if size == 1 {
		list = list[:0]
		for i := range all {
			list = append(list, slice{hash: uint64(all[i].Hash), zone: i % zones, endpoints: []int{i}})
		}
	}
	slices.SortStableFunc(list, func(a, b slice) int { return len(b.endpoints) - len(a.endpoints) })
	return list
}

func spread(a uint64) uint64 {
	hi, lo := bits.Mul64(a*0x9e3779b97f4a7c15, 0xe7037ed1a0b428db)
	return hi ^ lo
}

// crowd is a fleet as the methods see it.
type crowd struct {
	zones int
	hash  []uint64
	in    [][]int // live checkers by zone
	load  []int
	limit int
}

func crowdOf(n, zones, away, checks int) *crowd {
	c := &crowd{zones: zones, hash: make([]uint64, n), in: make([][]int, zones), load: make([]int, n), limit: checks * 11 / 10 / (n - away)}
	for i := range n {
		c.hash[i] = uint64(health.ClusterHash(checker(i, zones).ID))
		if i >= away {
			c.in[i%zones] = append(c.in[i%zones], i)
		}
	}
	return c
}

// byHash is the highest ranking checker of a zone with room below a limit.
func (c *crowd) byHash(s *slice, zone, limit int) (best int, top uint64) {
	best = -1
	for _, i := range c.in[zone] {
		if score := spread(s.hash ^ c.hash[i]); (best < 0 || score > top) && c.load[i]+len(s.endpoints) <= limit {
			best, top = i, score
		}
	}
	return best, top
}

// method gives a slice its checkers, in the zone and two others.
type method func(c *crowd, s *slice, before []int) []int

// hashed is rendezvous hashing; with a bound, that with bounded loads.
func hashed(bounded bool) method {
	return func(c *crowd, s *slice, _ []int) []int {
		limit := 1 << 40
		if bounded {
			limit = c.limit
		}
		type pick struct {
			checker int
			score   uint64
		}
		var others []pick
		own, _ := c.byHash(s, s.zone, limit)
		for z := range c.zones {
			if i, score := c.byHash(s, z, limit); z != s.zone && i >= 0 {
				others = append(others, pick{i, score})
			}
		}
		slices.SortFunc(others, func(a, b pick) int { return -int(a.score>>1) + int(b.score>>1) })
		seats := []int{others[0].checker, others[1].checker}
		if own >= 0 {
			return append(seats, own)
		}
		return append(seats, others[2].checker)
	}
}

// sticky keeps live checkers, and takes the least loaded for the rest.
func sticky(c *crowd, s *slice, before []int) []int {
	var seats []int
	used := make([]bool, c.zones)
	for _, i := range before {
		if slices.Contains(c.in[i%c.zones], i) {
			seats, used[i%c.zones] = append(seats, i), true
		}
	}
	for len(seats) < 3 {
		best := -1
		for z := range c.zones {
			if used[z] || !used[s.zone] && z != s.zone {
				continue
			}
			for _, i := range c.in[z] {
				if best < 0 || c.load[i] < c.load[best] {
					best = i
				}
			}
		}
		seats, used[best%c.zones] = append(seats, best), true
	}
	return seats
}

// plan is the checkers of each slice.
func (m method) plan(c *crowd, list []slice, before [][]int) [][]int {
	plan := make([][]int, len(list))
	for i := range list {
		var had []int
		if before != nil {
			had = before[i]
		}
		plan[i] = m(c, &list[i], had)
		for _, k := range plan[i] {
			c.load[k] += len(list[i].endpoints)
		}
	}
	return plan
}

// who returns the checkers of each endpoint.
func who(list []slice, plan [][]int, n int) [][]int {
	all := make([][]int, n)
	for i := range list {
		for _, e := range list[i].endpoints {
			all[e] = plan[i]
		}
	}
	return all
}

// compare tells how many checks are elsewhere, and for how many checkers
// something changes.
func compare(a, b [][]int, checkers int) (moved, specifiers int) {
	touched := make([]bool, checkers)
	for e := range a {
		for _, k := range b[e] {
			if !slices.Contains(a[e], k) {
				moved++
				touched[k] = true
			}
		}
		for _, k := range a[e] {
			if !slices.Contains(b[e], k) {
				touched[k] = true
			}
		}
	}
	for _, t := range touched {
		if t {
			specifiers++
		}
	}
	return moved, specifiers
}

// clustersOf is how many clusters a checker has on average.
func clustersOf(all []assign.Endpoint, plan [][]int, checkers int) float64 {
	pairs := map[[2]uint64]bool{}
	for e, seats := range plan {
		for _, k := range seats {
			pairs[[2]uint64{uint64(all[e].ClusterHash), uint64(k)}] = true
		}
	}
	return float64(len(pairs)) / float64(checkers)
}

// fewest is the least number of clusters that a checker can have on average:
// each cluster has three checkers, one in each zone where it has endpoints, and
// as many as it takes to hold it.
func fewest(all []assign.Endpoint, s size) float64 {
	count, zones := map[health.Hash]int{}, map[health.Hash]map[health.Locality]bool{}
	for i := range all {
		h := all[i].ClusterHash
		if count[h]++; zones[h] == nil {
			zones[h] = map[health.Locality]bool{}
		}
		zones[h][all[i].Locality] = true
	}
	sum, most := 0, 3*s.endpoints*11/10
	for h, n := range count {
		sum += max(3, len(zones[h]), (3*n*s.checkers+most-1)/most)
	}
	return float64(sum) / float64(s.checkers)
}

// run is what a method comes to: plans with all checkers, with the first away,
// and with the first 2 % away, as it grew and from scratch.
type run struct {
	full, leave, grown, scratch [][]int
	load                        []int
}

func (r run) report(b *testing.B, all []assign.Endpoint, s size) {
	least := 0
	for _, seats := range r.full {
		if slices.Contains(seats, 0) {
			least++
		}
	}
	moved, specifiers := compare(r.full, r.leave, s.checkers)
	lost, _ := compare(r.grown, r.scratch, s.checkers)
	b.ReportMetric(float64(slices.Max(r.load)*s.checkers)/float64(3*len(all)), "max/mean")
	b.ReportMetric(clustersOf(all, r.full, s.checkers)/fewest(all, s), "clusters/fewest")
	b.ReportMetric(float64(moved)/float64(least), "leave-moved/least")
	b.ReportMetric(float64(specifiers), "leave-specifiers")
	b.ReportMetric(float64(lost)/float64(3*len(all))*100, "%takeover-moved")
}

// BenchmarkMethods holds ours against the published ones: the time of a plan
// from scratch, endpoints known, and what becomes of it.
func BenchmarkMethods(b *testing.B) {
	s := sizes[1]
	away := s.checkers / 50
	all := endpoints(s.endpoints, s.zones, 0, 3)
	for name, m := range map[string]struct {
		method
		slice int
	}{
		"rendezvous/slices-of-128": {hashed(false), 128}, "bounded-load/slices-of-128": {hashed(true), 128}, "least-loaded-sticky/slices-of-128": {sticky, 128},
		"rendezvous/endpoints": {hashed(false), 1},
	} {
		b.Run(name, func(b *testing.B) {
			list := slicesOf(all, s.zones, m.slice)
			var c *crowd
			var plan [][]int
			for b.Loop() {
				c = crowdOf(s.checkers, s.zones, 0, 3*len(all))
				plan = m.plan(c, list, nil)
			}
			after := func(away int, before [][]int) [][]int {
				return m.plan(crowdOf(s.checkers, s.zones, away, 3*len(all)), list, before)
			}
			n := len(all)
			run{who(list, plan, n), who(list, after(1, plan), n), who(list, after(away, plan), n), who(list, after(away, nil), n), c.load}.report(b, all, s)
		})
	}
	b.Run("anchored-sticky", func(b *testing.B) { benchmarkOurs(b, all, s, away) })
}

func benchmarkOurs(b *testing.B, all []assign.Endpoint, s size, away int) {
	fleet := checkers(s.checkers, s.zones)
	known := func() *assign.Planner {
		p := assign.New(assign.Options{})
		p.Class(assign.Class{})
		p.Apply(assign.Change{Settling: true, Upsert: all})
		return p
	}
	number := map[string]int{}
	for i := range fleet {
		number[fleet[i].ID] = i
	}
	who := func(p *assign.Planner) [][]int {
		plan := make([][]int, len(all))
		for e := range all {
			for _, id := range p.Checkers(all[e].ID) {
				plan[e] = append(plan[e], number[id])
			}
		}
		return plan
	}
	var p *assign.Planner
	for b.Loop() {
		b.StopTimer()
		p = known()
		b.StartTimer()
		p.Apply(assign.Change{Join: fleet})
	}
	r := run{full: who(p)}
	for i := range fleet {
		r.load = append(r.load, p.Load(fleet[i].ID))
	}
	p.Apply(assign.Change{Leave: names(fleet[:1])})
	r.leave = who(p)
	for i := range away - 1 {
		p.Apply(assign.Change{Leave: names(fleet[i+1 : i+2])})
	}
	r.grown = who(p)
	p = known()
	p.Apply(assign.Change{Join: fleet[away:]})
	r.scratch = who(p)
	r.report(b, all, s)
}
