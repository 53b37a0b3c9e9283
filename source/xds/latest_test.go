package xds

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/source"
)

// changeAny changes something that a source knows or is asked for.
func changeAny(s *Source, r *rand.Rand, step int) {
	name, service := string(rune('a'+r.IntN(4))), string(rune('a'+r.IntN(6)))
	errorOf := func(name string) []*discoveryv3.ResourceError {
		code := []codes.Code{codes.NotFound, codes.Internal}[r.IntN(2)]
		return []*discoveryv3.ResourceError{{ResourceName: &discoveryv3.ResourceName{Name: name}, ErrorDetail: &statuspb.Status{Code: int32(code), Message: "no"}}}
	}
	lease := func(a *endpointv3.ClusterLoadAssignment) *endpointv3.ClusterLoadAssignment {
		if r.IntN(3) == 0 {
			a.Policy = &endpointv3.ClusterLoadAssignment_Policy{EndpointStaleAfter: durationpb.New(time.Duration(1+r.IntN(9)) * time.Second)}
		}
		return a
	}
	one := item{version: fmt.Sprint(step), ttl: []time.Duration{0, 0, 5 * time.Second}[r.IntN(3)], wrong: []string{"", "", "", "bad"}[r.IntN(4)]}
	switch r.IntN(10) {
	case 0, 1:
		one.name, one.body = name, pack(eds(name, service))
		s.accept(s.clusters, &update{items: []item{one}})
	case 2:
		one.name, one.body = name, pack(inline(name, fmt.Sprint(step)))
		s.accept(s.clusters, &update{items: []item{one}, full: r.IntN(3) == 0})
	case 3:
		s.accept(s.clusters, &update{removed: map[string]bool{name: true}})
	case 4, 5:
		one.name, one.body = service, pack(lease(endpoints(service, fmt.Sprint(r.IntN(3)))))
		s.accept(s.assignments, &update{items: []item{one}})
	case 6:
		s.accept(s.assignments, &update{removed: map[string]bool{service: true}})
	case 7:
		t, of := s.clusters, name
		if r.IntN(2) > 0 {
			t, of = s.assignments, service
		}
		s.accept(t, &update{errors: errorOf(of)})
	case 8:
		s.Want([]string{"a", "d", "e", "f"}[r.IntN(3):3])
	default:
		s.assignments.purge() // as before a request
	}
}

// wholeSet makes the set of all that is known, as if all had changed.
func wholeSet(s *Source, before []*source.Cluster, now time.Time) *source.Set {
	set := &source.Set{}
	was, taken := map[string]*source.Cluster{}, map[string]bool{}
	for _, c := range before {
		if !c.Lone {
			was[c.Name] = c
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.clusters.entries)) {
		c := was[name]
		if p, ok := s.parts(s.clusters.entries[name], set, now); ok {
			c = s.cluster(name, p)
		}
		if c != nil {
			set.Clusters = append(set.Clusters, c)
			taken[c.Name] = true
			taken[c.ServiceName] = taken[c.ServiceName] || c.EDS()
		}
	}
	for _, name := range s.wanted {
		e := s.assignments.entries[name]
		switch {
		case taken[name]:
		case e.good != nil:
			set.Clusters = append(set.Clusters, s.cluster(name, parts{lone: true, assignment: e.good.decoded.lists}))
		case e.refused != nil:
			set.Clusters = append(set.Clusters, s.cluster(name, parts{lone: true, rejected: e.refused.reason}))
		}
	}
	slices.SortFunc(set.Clusters, func(a, b *source.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return set
}

// lines are what a set has: two of the same line have the same parts.
func lines(set *source.Set) (all []string) {
	for _, c := range set.Clusters {
		all = append(all, fmt.Sprintf("%s %s %p %p %s %t", c.Name, c.ServiceName, c.Config, c.Assignment, c.Rejected, c.Lone))
	}
	return all
}

// scheduled holds the agendas and tallies of a source against its entries, after expire.
func scheduled(t *testing.T, s *Source) {
	t.Helper()
	for _, index := range []*table{s.clusters, s.assignments} {
		var counts tally
		due := 0
		for name, e := range index.entries {
			waits := e.waiting(time.Now(), s.settings.fetchTimeout)
			if waits {
				counts.waiting++
			}
			if waits && e.askers[others] {
				counts.lent++
			}
			if e.timed() || e.stale {
				counts.mortal++
			}
			if (waits || e.timed()) == e.deadline.IsZero() {
				t.Fatalf("%s waits %t, is timed %t, and is due at %v", name, waits, e.timed(), e.deadline)
			}
			if !e.deadline.IsZero() {
				if due++; index.agenda.Items[e.slot] != e || e.deadline.Before(index.agenda.next()) {
					t.Fatalf("%s is not in its place", name)
				}
			}
		}
		if index.counts != counts || len(index.agenda.Items) != due {
			t.Fatalf("counted %+v and %d to come, there are %+v and %d", index.counts, len(index.agenda.Items), counts, due)
		}
	}
}

// TestChangesAlone: what was not touched since the last set is in the next one
// as it would be if that was made of all that is known, and keeps its pointer.
func TestChangesAlone(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			s, err := New(Options{Name: "upstream", ConfigSource: deltaSource})
			if err != nil {
				t.Fatal(err)
			}
			d, r, before := newDelivery(s, nil), rand.New(rand.NewPCG(seed, 2)), &source.Set{}
			for step := range 60 {
				changeAny(s, r, step)
				counted(t, s)
				if r.IntN(3) == 0 {
					continue
				}
				time.Sleep(time.Duration(r.IntN(3)) * 4 * time.Second)
				d.expire(time.Now())
				for _, e := range s.assignments.entries {
					if !e.expires.IsZero() && !e.expires.After(time.Now()) {
						t.Fatalf("seed %d, step %d: %s has outlived its time", seed, step, e.name)
					}
				}
				scheduled(t, s)
				want := wholeSet(s, before.Clusters, time.Now())
				got := s.build(time.Now())
				problems := slices.DeleteFunc(slices.Clone(got.Problems), func(p source.Problem) bool { return p.Resource == "" })
				if !slices.Equal(lines(got), lines(want)) || !slices.Equal(problems, want.Problems) {
					t.Fatalf("seed %d, step %d: got\n%v %v, want\n%v %v", seed, step, lines(got), problems, lines(want), want.Problems)
				}
				for i, line := range lines(got) {
					if at := slices.Index(lines(before), line); at >= 0 && before.Clusters[at] != got.Clusters[i] {
						t.Fatalf("seed %d, step %d: %s did not change, but its pointer did", seed, step, line)
					}
				}
				before = got
			}
		})
	}
}
