package coordinator_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

// TestRelayAddsHealth covers a client behind hdsd: it gets the resources of the control plane, with health
// that follows the upstream.
func TestRelayAddsHealth(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		m := newManagement(t)
		m.come()
		plain := proto.CloneOf(byEDS("plain")[0].(*clusterv3.Cluster))
		plain.HealthChecks = nil
		m.says(append(byEDS("web"), plain), endpoints("web", corev3.HealthStatus_UNKNOWN, address), endpoints("plain", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready() // without a client
		s.checker("c1")
		c := s.client(delta, "edge-1", "plain", "web")
		s.eventually("health", func() bool { return c.health("web") == "HEALTHY" })
		s.eventually("the checked cluster to come without its checks", func() bool { return len(c.cluster("web").GetHealthChecks()) == 0 })
		if got := c.cluster("plain"); !proto.Equal(got, plain) {
			t.Errorf("the other cluster came as %v", got)
		}
		if got := s.healthOf("web", address); got != "HEALTHY" {
			t.Errorf("/v1/endpoints says %q", got)
		}
		status.Store(fails)
		s.eventually("the failure", func() bool { return c.health("web") == "UNHEALTHY" })
		if got := c.health("plain"); got != "UNKNOWN" {
			t.Errorf("what is not checked is %s", got)
		}
		status.Store(http.StatusOK)
		s.eventually("the recovery", func() bool { return c.health("web") == "HEALTHY" })

		other, _ := upstream(t)
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, other))
		s.eventually("the control plane's change", func() bool {
			a := c.assignment("web")
			return a != nil && strings.Contains(a.String(), other[strings.LastIndex(other, ":")+1:]) && c.health("web") == "HEALTHY"
		})
	})
}

// TestTakenOverClusterGetsAssignmentAgain covers an Envoy, which uses a changed cluster only after its
// assignment has come again, or after initial_fetch_timeout.
func TestTakenOverClusterGetsAssignmentAgain(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, _ := upstream(t)
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web")
		s.eventually("the assignment after the cluster without its checks", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			over := false
			for _, h := range c.responses {
				cluster := &clusterv3.Cluster{}
				if r := h.resources["web"]; h.typeURL == resourcev3.ClusterType && r.UnmarshalTo(cluster) == nil && len(cluster.GetHealthChecks()) == 0 {
					over = true
				}
				if over && h.typeURL == resourcev3.EndpointType && h.resources["web"] != nil {
					return true
				}
			}
			return false
		})
	})
}

// TestFirstRelayedAssignmentHasStoredHealth covers a restart before any checker returns, also for a new node.
func TestFirstRelayedAssignmentHasStoredHealth(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		status.Store(fails)
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		dir := t.TempDir()
		s := newSite(t, dir, relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web")
		s.eventually("the failure", func() bool { return c.health("web") == "UNHEALTHY" })
		s.stop()
		<-s.ended

		s = newSite(t, dir, relaying(m, ""), "")
		s.ready()
		for _, id := range []string{"never-seen", "edge-1"} {
			c = s.client(delta, id, "web")
			s.eventually("an assignment", func() bool { return c.assignment("web") != nil })
			c.hasStoredHealth()
		}
	})
}

// hasStoredHealth checks that the first assignment has the failure in it, and that no cluster
// came with health checks.
func (c *client) hasStoredHealth() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.responses {
		if packed := h.resources["web"]; packed != nil && h.typeURL == resourcev3.ClusterType {
			k := &clusterv3.Cluster{}
			if err := packed.UnmarshalTo(k); err != nil || len(k.GetHealthChecks()) != 0 {
				c.t.Errorf("%s: a cluster came with health checks: %v, %v", c.node.GetId(), k, err)
			}
		}
	}
	for _, h := range c.responses {
		if h.typeURL == resourcev3.EndpointType {
			if !strings.Contains(string(h.resources["web"].GetValue()), "\x10\x02") {
				c.t.Errorf("%s: the first assignment has not the stored health", c.node.GetId())
			}
			return
		}
	}
}

// TestControlPlaneGetsACKs covers ACKs and NACKs of resources of the control plane, with their text, nonces
// and versions. ACKs for responses of hdsd do not pass.
func TestControlPlaneGetsACKs(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		m := newManagement(t)
		var foreign, nodes atomic.Int32
		refused := make(chan string, 10)
		note := func(typeURL, nonce, version, refusal, node string) {
			if strings.Contains(nonce, "hdsd") || strings.Contains(version, "hdsd") {
				foreign.Add(1)
			}
			if refusal != "" {
				select {
				case refused <- typeURL + " " + refusal:
				default: // by state of the world, it answers a refusal with the same again
				}
			}
			if node == "edge-1" {
				nodes.Add(1)
			}
		}
		m.hears = callbacks{
			onDelta: func(r *discoveryv3.DeltaDiscoveryRequest) {
				note(r.GetTypeUrl(), r.GetResponseNonce(), "", r.GetErrorDetail().GetMessage(), r.GetNode().GetId())
			},
			onState: func(r *discoveryv3.DiscoveryRequest) {
				note(r.GetTypeUrl(), r.GetResponseNonce(), r.GetVersionInfo(), r.GetErrorDetail().GetMessage(), r.GetNode().GetId())
			},
		}
		m.come()
		m.extra = map[string][]types.Resource{resourcev3.ListenerType: {&listenerv3.Listener{Name: "front"}}}
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.newClient(delta, "edge-1")
		c.refuses = func(h *heard) string {
			if h.typeURL == resourcev3.ListenerType {
				return "no such filter"
			}
			return ""
		}
		c.talker.ask(resourcev3.ClusterType, nil, nil)
		c.talker.ask(resourcev3.EndpointType, []string{"web"}, nil)
		c.talker.ask(resourcev3.ListenerType, nil, nil)
		go c.run()
		if got, want := <-refused, resourcev3.ListenerType+" no such filter"; got != want {
			t.Errorf("the control plane heard %q, want %q", got, want)
		}
		s.eventually("health", func() bool { return c.health("web") == "HEALTHY" })
		status.Store(fails)
		s.eventually("the failure", func() bool { return c.health("web") == "UNHEALTHY" })
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address, "127.0.0.1:1"))
		s.eventually("the change", func() bool {
			a := c.assignment("web")
			return a != nil && len(a.GetEndpoints()[0].GetLbEndpoints()) == 2
		})
		s.eventually("the list of clients", func() bool {
			_, text := s.get("/v1/clients")
			return strings.Contains(text, "no such filter") && strings.Contains(text, resourcev3.EndpointType) && strings.Contains(text, `"id":"edge-1"`)
		})
		s.eventually("the refusal to need attention", func() bool {
			return strings.Join(s.needing("DATA_PLANES_REFUSING"), "") == "data plane edge-1 refuses a Listener, and keeps what it had: no such filter"
		})
		if foreign.Load() > 0 {
			t.Errorf("the control plane got %d versions or nonces of hdsd's", foreign.Load())
		}
		if nodes.Load() == 0 {
			t.Error("the control plane got no node")
		}
	})
}

// TestRelayWithoutHealth covers unchanged responses, and a reload of the setting.
func TestRelayWithoutHealth(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		status.Store(fails)
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, ", health: OFF"), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web")
		s.eventually("the failure", func() bool { return s.healthOf("web", address) == "UNHEALTHY" })
		if got := c.cluster("web"); !proto.Equal(got, byEDS("web")[0]) {
			t.Errorf("the cluster came as %v", got)
		}
		if got := c.health("web"); got != "UNKNOWN" {
			t.Errorf("the assignment says %s", got)
		}
		for _, h := range c.responses {
			for _, v := range append([]string{h.version, h.nonce}, h.versions["web"]) {
				if strings.Contains(v, "hdsd") {
					t.Errorf("%s came with version or nonce %s", h.typeURL, v)
				}
			}
		}
		for _, on := range []string{"ON", "OFF"} {
			restart, err := s.Reload(configuration(t, s.dir, relaying(m, ", health: "+on), ""))
			if err != nil || len(restart) > 0 {
				t.Fatal(restart, err)
			}
			s.eventually("the switch "+on, func() bool {
				return (c.health("web") == "UNHEALTHY") == (on == "ON") && (len(c.cluster("web").GetHealthChecks()) == 0) == (on == "ON")
			})
		}
	})
}

// TestRelayedStaticCluster covers health within the cluster, and the removal of its health checks.
func TestRelayedStaticCluster(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		m := newManagement(t)
		m.come()
		listed := byEDS("web")[0].(*clusterv3.Cluster)
		listed.ClusterDiscoveryType, listed.EdsClusterConfig = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, nil
		listed.LoadAssignment = endpoints("web", corev3.HealthStatus_UNKNOWN, address).(*endpointv3.ClusterLoadAssignment)
		m.says([]types.Resource{listed})
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1")
		health := func() corev3.HealthStatus {
			k := c.cluster("web")
			if k == nil || len(k.GetHealthChecks()) > 0 || k.GetType() != clusterv3.Cluster_STATIC {
				return -1
			}
			return k.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus()
		}
		s.eventually("health", func() bool { return health() == corev3.HealthStatus_HEALTHY })
		status.Store(fails)
		s.eventually("the failure", func() bool { return health() == corev3.HealthStatus_UNHEALTHY })
	})
}
