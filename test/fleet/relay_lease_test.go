package fleet

import (
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestLeasesBehindTheRelay: an Envoy keeps endpoints as long as the control plane renews their
// policy.endpoint_stale_after, whatever hdsd has to say of them meanwhile. Health that changes
// neither renews the lease nor brings the endpoints back once it is over.
func TestLeasesBehindTheRelay(t *testing.T) {
	t.Parallel()
	p, c := Relay(t)
	for name, delta := range map[string]bool{"delta": true, "state": false} {
		server := Upstreams(t, 1, upstream.Options{})[0]
		address := server.Addr()
		front := Front{Plain: envoy.FreeAddress(t), TLS: envoy.FreeAddress(t)}
		p.Lease = 3 * time.Second
		renew := func() {
			p.Lease += time.Millisecond // by delta, go-control-plane sends nothing that it has sent
			p.Say(name, front, address)
		}
		renew()
		plane := envoy.Start(t, "1.40.0", name, Bootstrap(t, name, c.GRPC, delta))
		renewed := func(health string) {
			t.Helper()
			envoy.Eventually(t, Patience, "renewed endpoints to be "+health, func() bool {
				renew()
				return plane.Clusters(t)["web"][address].EDSHealth == health
			})
		}
		flips := []struct {
			to     upstream.Behaviour
			health string
		}{{upstream.Status(503), "UNHEALTHY"}, {upstream.Healthy(), "HEALTHY"}}
		renewed("HEALTHY")
		for _, flip := range flips {
			server.Set(flip.to)
			renewed(flip.health)
		}

		ended := func() bool { return plane.Stats(t, "web.assignment_stale")["cluster.web.assignment_stale"] > 0 }
		for i := 0; !ended(); i++ { // it is not renewed any more, and flips all the time
			if i == 30 {
				t.Fatal("30 flips later, the lease is not over: hdsd renews it")
			}
			server.Set(flips[i%2].to)
			c.AwaitHealth("web", address, flips[i%2].health)
		}
		for _, flip := range flips {
			server.Set(flip.to)
			c.AwaitHealth("web", address, flip.health)
		}
		if envoy.Await(2*time.Second, func() bool { return len(plane.Clusters(t)["web"]) > 0 }) {
			t.Error("the lease is over, and a flip brought the endpoint back")
		}
		renewed("HEALTHY")
		plane.Kill()
	}
}
