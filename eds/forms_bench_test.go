package eds

import (
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/publish"
)

// BenchmarkHeartbeat makes the heartbeats of a client with 1,000 assignments.
func BenchmarkHeartbeat(b *testing.B) {
	names := manyNames(1000)
	s := NewServer(Options{TTL: map[string]time.Duration{resourcev3.EndpointType: time.Hour}})
	s.Update(publish.Update{Assignments: manyAssignments(names, 100)})
	st := &stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1), features: features{ttl: true}}
	u := newSubscription(st, s.published.assignments)
	defer u.end()
	if err := u.requests.process(&request{names: names}); err != nil {
		b.Fatal(err)
	}
	for respond(u) > 0 {
	}
	b.ReportAllocs()
	for b.Loop() {
		u.hastenHeartbeat()
		for respond(u) > 0 {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(names)), "ns/resource")
}

// BenchmarkZoneFlip flips an endpoint as a zone sees it, and as all see it. 500 clients
// of that zone each watch 1,000 assignments of 100 endpoints.
func BenchmarkZoneFlip(b *testing.B) {
	names := manyNames(1000)
	s := NewServer(Options{ZoneVariants: true})
	s.Update(publish.Update{Assignments: manyAssignments(names, 100)})
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = locatorKey(&discoveryv3.ResourceLocator{Name: name, DynamicParameters: map[string]string{ZoneParameter: "x"}})
	}
	subs := make([]*subscription, 500)
	for i := range subs {
		st := &stream{server: s, permitted: access.AllClusters(), id: uint64(i), delta: true, wake: make(chan struct{}, 1)}
		subs[i] = newSubscription(st, s.published.assignments)
		if err := subs[i].requests.process(&request{names: keys}); err != nil {
			b.Fatal(err)
		}
		for respond(subs[i]) > 0 {
		}
	}
	flip := func(b *testing.B, set func(health.EndpointID, health.Status)) {
		n := 0
		for b.Loop() {
			n++
			set(health.EndpointID(n%1000*100), health.Status(1+n/1000%2))
			for _, u := range subs {
				if respond(u) == 0 {
					b.Fatal("nothing was sent")
				}
			}
		}
	}
	b.Run("of all", func(b *testing.B) { flip(b, s.setHealth) })
	b.Run("of the zone", func(b *testing.B) {
		flip(b, func(id health.EndpointID, status health.Status) {
			s.SetZoneHealth(zoneNamed("x"), []publish.Health{{ID: id, Status: 3 + status}}, nil)
		})
	})
}
