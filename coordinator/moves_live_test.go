package coordinator_test

import (
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// warming is what Envoys report: each host that the last specifier did not have in its locality is
// UNHEALTHY until it is probed. Addresses of port 8080 are dead.
type warming struct {
	mu      sync.Mutex
	reports map[string]int // of each zone and address
}

// unprobed is for how many reports a host is UNHEALTHY at first.
const unprobed = 3

func (w *warming) report(spec *healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse {
	w.mu.Lock()
	defer w.mu.Unlock()
	said, before := &healthv3.EndpointHealthResponse{}, w.reports
	w.reports = map[string]int{} // a host that is left out is new when it comes again
	for _, k := range spec.GetClusterHealthChecks() {
		group := &healthv3.ClusterEndpointsHealth{ClusterName: k.GetClusterName()}
		for _, l := range k.GetLocalityEndpoints() {
			in := &healthv3.LocalityEndpointsHealth{Locality: l.GetLocality()}
			for _, e := range l.GetEndpoints() {
				name := l.GetLocality().GetZone() + " " + e.GetAddress().GetSocketAddress().GetAddress()
				w.reports[name] = before[name] + 1
				status := corev3.HealthStatus_HEALTHY
				if w.reports[name] <= unprobed || e.GetAddress().GetSocketAddress().GetPortValue() == 8080 {
					status = corev3.HealthStatus_UNHEALTHY
				}
				in.EndpointsHealth = append(in.EndpointsHealth, &healthv3.EndpointHealth{Endpoint: e, HealthStatus: status})
			}
			group.LocalityEndpointsHealth = append(group.LocalityEndpointsHealth, in)
		}
		said.ClusterEndpointsHealth = append(said.ClusterEndpointsHealth, group)
	}
	return said
}

// probed reports whether an address was probed in a zone, and reported since, often.
func (w *warming) probed(zone, address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reports[zone+" "+address] > 10*unprobed
}

// inZone is an assignment of a live and a dead endpoint.
func inZone(zone string) types.Resource {
	a := endpoints("web", corev3.HealthStatus_UNKNOWN, "192.0.2.1:80", "192.0.2.2:8080").(*endpointv3.ClusterLoadAssignment)
	a.Endpoints[0].Locality = &corev3.Locality{Region: "eu", Zone: zone}
	return a
}

// TestHealthStaysWhenEndpointsMove covers a move to another zone, with one dead endpoint: data planes see no
// change of health, although checkers take the hosts for new ones.
func TestHealthStaysWhenEndpointsMove(t *testing.T) {
	for name, text := range map[string]func(m *management) string{
		"source": func(m *management) string {
			before, _, _ := strings.Cut(quick, "sources:")
			return before + "sources:\n" + m.source("mesh", "5s", "")
		},
		"relay": func(m *management) string { return relaying(m, "") },
	} {
		t.Run(name, func(t *testing.T) {
			bothVariants(t, func(t *testing.T, delta bool) {
				t.Parallel()
				m := newManagement(t)
				m.come()
				m.says(byEDS("web"), inZone("a"))
				s := newSite(t, t.TempDir(), text(m), "")
				s.ready()
				checkers := []*warming{{reports: map[string]int{}}, {reports: map[string]int{}}}
				for i, id := range []string{"c1", "c2"} {
					s.scripted(id, checkers[i].report)
				}
				c := s.client(delta, "edge-1", "web")
				s.eventually("verdicts", func() bool { return c.zoneAndHealth() == "a HEALTHY UNHEALTHY" })
				from := len(c.seen())
				for _, zone := range []string{"b", "c"} {
					m.says(byEDS("web"), inZone(zone))
					s.eventually("the move to "+zone, func() bool { return c.zoneAndHealth() == zone+" HEALTHY UNHEALTHY" })
					s.eventually("votes of where they are", func() bool {
						return checkers[0].probed(zone, "192.0.2.1") && checkers[1].probed(zone, "192.0.2.2")
					})
				}
				for _, seen := range c.seen()[from:] {
					if !strings.HasSuffix(seen, " HEALTHY UNHEALTHY") {
						t.Errorf("the data plane saw %q", seen)
					}
				}
				s.wantStory("web", "192.0.2.1:80", "UNKNOWN HEALTHY HEALTHY HEALTHY")
				s.wantStory("web", "192.0.2.2:8080", "UNKNOWN UNHEALTHY UNHEALTHY UNHEALTHY")
			})
		})
	}
}

// TestHealthStaysWhenEndpointsAlternate covers the relay: hdsd waits before it follows, and the assignment of
// the control plane passes through.
func TestHealthStaysWhenEndpointsAlternate(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), inZone("a"))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		checker := &warming{reports: map[string]int{}}
		s.scripted("c1", checker.report)
		c := s.client(delta, "edge-1", "web")
		s.eventually("verdicts", func() bool { return c.zoneAndHealth() == "a HEALTHY UNHEALTHY" })
		from := len(c.seen())
		for _, zone := range []string{"b", "a", "b", "a"} {
			m.says(byEDS("web"), inZone(zone))
			s.eventually("the move to "+zone, func() bool { return strings.HasPrefix(c.zoneAndHealth(), zone) })
			s.eventually("hdsd to follow", func() bool { return checker.probed(zone, "192.0.2.1") })
		}
		for _, seen := range c.seen()[from:] {
			if !strings.HasSuffix(seen, " HEALTHY UNHEALTHY") {
				t.Errorf("the data plane saw %q", seen)
			}
		}
	})
}

// zoneAndHealth is what the client has of the assignment web.
func (c *client) zoneAndHealth() string {
	a := c.assignment("web")
	if a == nil {
		return ""
	}
	return zoneAndHealth(a)
}

func zoneAndHealth(a *endpointv3.ClusterLoadAssignment) string {
	text := a.GetEndpoints()[0].GetLocality().GetZone()
	for _, e := range a.GetEndpoints()[0].GetLbEndpoints() {
		text += " " + e.GetHealthStatus().String()
	}
	return text
}

// seen is each version of web that the client was sent.
func (c *client) seen() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.responses {
		a := &endpointv3.ClusterLoadAssignment{}
		if packed := h.resources["web"]; h.typeURL == resourcev3.EndpointType && packed != nil && packed.UnmarshalTo(a) == nil {
			all = append(all, zoneAndHealth(a))
		}
	}
	return all
}
