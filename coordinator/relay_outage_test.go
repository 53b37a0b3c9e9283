package coordinator_test

import (
	"maps"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// reconnect opens another stream of a client that has what it had.
func (s *site) reconnect(delta bool, before *client, assignments ...string) *client {
	s.t.Helper()
	c := s.newClient(delta, before.node.GetId())
	before.mu.Lock()
	for typeURL, all := range before.resources {
		c.resources[typeURL], c.versions[typeURL] = maps.Clone(all), maps.Clone(before.versions[typeURL])
	}
	before.mu.Unlock()
	if state, ok := c.talker.(*stateTalker); ok {
		maps.Copy(state.version, before.talker.(*stateTalker).version)
	}
	c.talker.ask(resourcev3.ClusterType, nil, c.versions[resourcev3.ClusterType])
	c.talker.ask(resourcev3.EndpointType, assignments, c.versions[resourcev3.EndpointType])
	go c.run()
	return c
}

// TestControlPlaneIsAway covers streams, which end as without hdsd. Clients that reconnect get health for
// their resources, and those of the control plane after its return.
func TestControlPlaneIsAway(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web")
		s.eventually("health", func() bool { return c.health("web") == "HEALTHY" })
		m.leave()
		<-c.ended

		stranger := s.client(delta, "edge-2", "web")
		if err := <-stranger.ended; err == nil || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("a client that had nothing gets %v", err)
		}
		had := s.reconnect(delta, c, "web")
		s.eventually("a stream from memory", func() bool {
			select {
			case <-had.ended: // hdsd has yet to remember what the earlier stream had
				had = s.reconnect(delta, c, "web")
			default:
			}
			return s.scrape().sum("hdsd_relay_streams_from_memory") == 1
		})
		fresh := s.client(delta, "edge-1", "web") // it has started again, and has nothing
		s.eventually("what it had", func() bool { return fresh.health("web") == "HEALTHY" && fresh.cluster("web") != nil })
		status.Store(fails)
		s.eventually("the failure", func() bool { return had.health("web") == "UNHEALTHY" && fresh.health("web") == "UNHEALTHY" })

		m.says(byEDS("web", "new"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		m.come()
		for _, c := range []*client{had, fresh} {
			if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "connect again") {
				t.Errorf("the stream ends with %v", err)
			}
		}
		again := s.reconnect(delta, had, "web")
		s.eventually("the control plane's word", func() bool { return again.cluster("new") != nil && again.health("web") == "UNHEALTHY" })
	})
}

// TestClientReconnects covers a client that returns with its versions: it gets the changed health only. The
// control plane gets its own versions.
func TestClientReconnects(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		m := newManagement(t)
		var mu sync.Mutex
		brought := map[string]bool{}
		note := func(version string) {
			mu.Lock()
			defer mu.Unlock()
			brought[version] = true
		}
		m.hears = callbacks{
			onDelta: func(r *discoveryv3.DeltaDiscoveryRequest) {
				for _, version := range r.GetInitialResourceVersions() {
					note(version)
				}
			},
			onState: func(r *discoveryv3.DiscoveryRequest) {
				if r.GetResponseNonce() == "" {
					note(r.GetVersionInfo())
				}
			},
		}
		m.come()
		m.says(byEDS("web", "other"), endpoints("web", corev3.HealthStatus_UNKNOWN, address), endpoints("other", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web", "other")
		s.eventually("health", func() bool { return c.health("web") == "HEALTHY" && c.health("other") == "UNHEALTHY" })
		c.stop()
		<-c.ended
		status.Store(fails)
		s.eventually("the failure", func() bool { return s.healthOf("web", address) == "UNHEALTHY" })
		again := s.reconnect(delta, c, "web", "other")
		s.eventually("the health", func() bool { return again.health("web") == "UNHEALTHY" })
		again.mu.Lock()
		for _, h := range again.responses {
			if delta && (h.typeURL == resourcev3.ClusterType || h.resources["other"] != nil) && len(h.resources) > 0 {
				t.Errorf("sent again: %v", h.resources)
			}
		}
		again.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		for version := range brought {
			if strings.Contains(version, "hdsd") {
				t.Errorf("the control plane got version %q", version)
			}
		}
	})
}

// TestResourcesOfGoneClients covers resources that only gone clients had: hdsd checks them for relay.keep.
func TestResourcesOfGoneClients(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m := newManagement(t)
	m.come()
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
	s := newSite(t, t.TempDir(), relaying(m, ", keep: 1s"), "")
	s.ready()
	s.checker("c1")
	c := s.client(true, "edge-1", "web")
	s.eventually("health", func() bool { return c.health("web") == "HEALTHY" })
	m.says(nil)
	s.eventually("the end of what the control plane took away", func() bool { return s.healthOf("web", address) == "" })
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
	s.eventually("health again", func() bool { return c.health("web") == "HEALTHY" })
	c.stop()
	<-c.ended
	if got := s.healthOf("web", address); got != "HEALTHY" {
		t.Errorf("once its client has gone, it is %q", got)
	}
	s.eventually("the end", func() bool { return s.healthOf("web", address) == "" })
}

// TestClusterRemovedDuringOutage covers a cluster that the control plane removes during its outage. hdsd
// stops checking it when the control plane answers its node, long before the end of relay.keep.
func TestClusterRemovedDuringOutage(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, _ := upstream(t)
		m := newManagement(t)
		m.come()
		m.says(byEDS("web", "old"), endpoints("web", corev3.HealthStatus_UNKNOWN, address), endpoints("old", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, "")+"default_health_checks: [{cluster_name_glob: \"*\", health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]}]\n", "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web", "old")
		s.eventually("health", func() bool { return c.health("web") == "HEALTHY" && c.health("old") == "HEALTHY" })
		m.leave()
		<-c.ended
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		m.come()
		again := s.reconnect(delta, c, "web", "old")
		s.eventually("the answer", func() bool { return again.cluster("old") == nil && again.cluster("web") != nil })
		if deltas, ok := again.talker.(*deltaTalker); ok { // as Envoy does, once the cluster is gone
			deltas.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesUnsubscribe: []string{"old"}})
		} else {
			again.talker.ask(resourcev3.EndpointType, []string{"web"}, nil)
		}
		s.eventually("the end of the checks", func() bool { return s.healthOf("old", address) == "" })
		if got := s.healthOf("web", address); got != "HEALTHY" {
			t.Errorf("the other one is %q", got)
		}
	})
}
