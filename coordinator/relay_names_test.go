package coordinator_test

import (
	"bytes"
	"net/http"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/source/sample"
)

// TestRelayedNameHarmsOneAssignment covers a name in an assignment, for which an Envoy refuses the response.
// The other assignments keep their endpoints and get health.
func TestRelayedNameHarmsOneAssignment(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		other, otherStatus := upstream(t)
		m := newManagement(t)
		m.come()
		clusters := append(byEDS("web"), byEDS("db")...)
		web, db := endpoints("web", corev3.HealthStatus_UNKNOWN, address), endpoints("db", corev3.HealthStatus_UNKNOWN, other)
		m.says(clusters, web, db)
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.newClient(delta, "edge-1")
		refused := make(chan bool, 1)
		c.refuses = func(h *heard) string {
			for _, packed := range h.resources {
				if h.typeURL == resourcev3.EndpointType && bytes.Contains(packed.GetValue(), []byte("mysql.internal")) {
					select {
					case refused <- true:
					default:
					}
					return "malformed IP address: mysql.internal"
				}
			}
			return ""
		}
		c.talker.ask(resourcev3.ClusterType, nil, nil)
		c.talker.ask(resourcev3.EndpointType, []string{"web", "db"}, nil)
		go c.run()
		s.eventually("health", func() bool { return c.health("web") == "HEALTHY" && c.health("db") == "HEALTHY" })

		named := endpoints("db", corev3.HealthStatus_UNKNOWN, other).(*endpointv3.ClusterLoadAssignment)
		named.Endpoints[0].LbEndpoints = append(named.Endpoints[0].LbEndpoints, sample.Endpoint("mysql.internal:3306"))
		m.says(clusters, web, named)
		<-refused
		for _, want := range []string{"UNHEALTHY", "HEALTHY"} {
			status.Store(map[string]int32{"UNHEALTHY": fails, "HEALTHY": http.StatusOK}[want])
			s.eventually("the neighbour to be "+want, func() bool { return c.health("web") == want })
		}
		otherStatus.Store(fails)
		m.says(clusters, web, db)
		s.eventually("the assignment without the name", func() bool { return c.health("db") == "UNHEALTHY" })
	})
}
