package replica

import (
	"fmt"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/source/sample"
)

// moved returns a cluster of four endpoints, the first of which is in another zone.
func moved(zone string) []*catalog.Cluster {
	k := web("web", "/", 12, 4)
	sample.Change(k, func(a *endpointv3.ClusterLoadAssignment) {
		first := a.Endpoints[0].LbEndpoints[:1:1]
		a.Endpoints[0].LbEndpoints = a.Endpoints[0].LbEndpoints[1:]
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "eu", Zone: zone}, LbEndpoints: first})
	})
	return prepare(k)
}

// TestAnEndpointMoves covers an endpoint that one replica after the other has in another zone. It keeps its health.
func TestAnEndpointMoves(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newFleet(t, seed)
			l.clusters = moved("a")
			l.variants = map[string][]*catalog.Cluster{}
			for _, p := range l.running() {
				p.deliver()
			}
			l.age()
			l.pass(20 * time.Second)
			l.turn("10.0.0.12:80")
			l.pass(20 * time.Second)
			for _, i := range l.Perm(3) {
				id := fmt.Sprint("r", i+1)
				l.variants[id] = moved("b")
				l.processes[id].deliver()
				if l.IntN(2) == 0 {
					l.log.endEpoch()
				}
				l.pass(l.between(0, 30*time.Second))
			}
			l.pass(40 * time.Second)
			key := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "b"}, Address: "10.0.0.12:80"}
			for _, p := range l.running() {
				for _, s := range p.planes[key] {
					if s.status != health.Unhealthy {
						t.Errorf("%s publishes %v", p.id, p.planes[key])
					}
				}
				if len(p.planes[key]) == 0 {
					t.Errorf("%s does not publish it", p.id)
				}
			}
			if old := (health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a"}, Address: key.Address}); l.log.chain[old] != health.Unknown || l.log.chain[key] != health.Unhealthy {
				t.Errorf("the log has %v and %v", l.log.chain[old], l.log.chain[key])
			}
			l.explained()
			l.checkHistory()
		})
	}
}
