package coordinator_test

import (
	"net/http"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// listing is a checked cluster of a version that lists one endpoint.
func listing(name, version, address string) *clusterv3.Cluster {
	k := byEDS(name)[0].(*clusterv3.Cluster)
	k.ClusterDiscoveryType, k.EdsClusterConfig = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, nil
	k.LoadAssignment = endpoints(name, corev3.HealthStatus_UNKNOWN, address).(*endpointv3.ClusterLoadAssignment)
	k.AltStatName = version
	return k
}

// TestRefusalOfOneCluster covers a client that refuses a response because of one cluster, and takes the
// others: it keeps their new versions. hdsd checks the new clusters, and sends flips. No cluster of the
// control plane is removed.
func TestRefusalOfOneCluster(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, status := upstream(t)
		m := newManagement(t)
		m.come()
		m.says([]types.Resource{listing("web", "1", address)})
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.newClient(delta, "edge-1")
		c.bad = "bad"
		c.talker.ask(resourcev3.ClusterType, nil, nil)
		go c.run()
		has := func(health corev3.HealthStatus, version string, names ...string) bool {
			for _, name := range names {
				k := c.cluster(name)
				if k.GetAltStatName() != version || len(k.GetHealthChecks()) > 0 || k.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus() != health {
					return false
				}
			}
			return true
		}
		s.eventually("health", func() bool { return has(corev3.HealthStatus_HEALTHY, "1", "web") })
		m.says([]types.Resource{listing("web", "2", address), listing("new", "2", address), listing("bad", "2", address)})
		s.eventually("health of what is good", func() bool { return has(corev3.HealthStatus_HEALTHY, "2", "web", "new") })
		for _, step := range []struct {
			answer int32
			health corev3.HealthStatus
		}{{fails, corev3.HealthStatus_UNHEALTHY}, {http.StatusOK, corev3.HealthStatus_HEALTHY}} {
			status.Store(step.answer)
			s.eventually("the flip", func() bool { return has(step.health, "2", "web", "new") })
			if got := s.healthOf("new", address); got != step.health.String() {
				t.Errorf("/v1/endpoints says that the new one is %q", got)
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		newer := false
		for _, h := range c.responses {
			k := &clusterv3.Cluster{}
			if packed := h.resources["web"]; packed != nil && packed.UnmarshalTo(k) == nil {
				if newer = newer || k.GetAltStatName() == "2"; newer && k.GetAltStatName() != "2" {
					t.Error("the older version comes after the newer one")
				}
			}
			if newer && !delta && len(h.resources) != 3 {
				t.Errorf("a response has %d clusters, the control plane's had three", len(h.resources))
			}
		}
	})
}

// TestClusterWithUnseenEndpoints covers a cluster that keeps its health checks, although hdsd has checked all
// endpoints of an assignment of its name: the endpoints may be others.
func TestClusterWithUnseenEndpoints(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		address, _ := upstream(t)
		m := newManagement(t)
		m.come()
		file, server := byEDS("file")[0].(*clusterv3.Cluster), byEDS("server")[0].(*clusterv3.Cluster)
		file.EdsClusterConfig.EdsConfig.ConfigSourceSpecifier = &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/etc/endpoints.yaml"}}
		server.EdsClusterConfig.EdsConfig.ConfigSourceSpecifier = &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "other"}}}},
		}}
		for _, one := range []*clusterv3.Cluster{file, server} {
			one.EdsClusterConfig.ServiceName = "web"
		}
		own := byEDS("self")[0].(*clusterv3.Cluster)
		own.EdsClusterConfig.ServiceName = "web"
		own.EdsClusterConfig.EdsConfig.ConfigSourceSpecifier = &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}
		m.says(append(byEDS("web"), file, server, own), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		c := s.client(delta, "edge-1", "web")
		s.eventually("the clusters whose endpoints hdsd sees to come without their checks", func() bool {
			return c.health("web") == "HEALTHY" && len(c.cluster("web").GetHealthChecks()) == 0 && len(c.cluster("self").GetHealthChecks()) == 0
		})
		for _, name := range []string{"file", "server"} {
			s.eventually(name+" to be checked by hdsd, too", func() bool { return s.healthOf(name, address) == "HEALTHY" })
			if len(c.cluster(name).GetHealthChecks()) != 1 {
				t.Errorf("%s: its health checks are gone", name)
			}
		}
	})
}
