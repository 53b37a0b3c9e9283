package relay

import (
	"testing"
	"time"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy/fields"
	"hdsd/source"
)

// unionLab is a stock and the catalogue of it.
type unionLab struct {
	t *testing.T
	*catalogue
}

func newUnionLab(t *testing.T) *unionLab {
	return &unionLab{t, newCatalogue(&Server{stock: newStock(1000, 10_000, nil)}, "somewhere")}
}

// newServerLab is a lab of a whole server.
func newServerLab(t *testing.T) *unionLab {
	return &unionLab{t, NewServer(Options{
		Health: true, Keep: time.Minute, MaxClusterEndpoints: 1000, MaxEndpoints: 10_000, Checks: func(*clusterv3.Cluster, uint64) bool { return true },
	}).catalogue}
}

// hand makes the catalogue, has the book know its versions of the cluster web, and returns what they are about.
func (l *unionLab) hand() []subject {
	l.clusters()
	touched := l.server.book.setVersions("web", l.versions["web"])
	l.server.book.renew(touched)
	return touched
}

func (l *unionLab) take(k kind, name string, m proto.Message) *item {
	l.t.Helper()
	wire, err := proto.Marshal(m)
	if err != nil {
		l.t.Fatal(err)
	}
	i, _, err := l.stock.acquire(k, true, resourceOf(name, wire))
	if err != nil {
		l.t.Fatal(err)
	}
	return i
}

// resourceOf is a Resource of a delta response.
func resourceOf(name string, body []byte) []byte {
	wire := fields.AppendText(nil, 1, "1")
	wire = fields.AppendBytes(wire, 2, fields.AppendBytes(fields.AppendText(nil, 1, "t"), 2, body))
	return fields.AppendText(wire, 3, name)
}

// clusters makes the catalogue and returns its clusters by name.
func (l *unionLab) clusters() map[string]*source.Cluster {
	set, _, _ := l.build(false)
	l.latest = set
	byName := map[string]*source.Cluster{}
	for _, k := range set.Clusters {
		byName[k.Name] = k
	}
	return byName
}

func checkedCluster(kind clusterv3.Cluster_DiscoveryType, path string, addresses ...string) *clusterv3.Cluster {
	k := &clusterv3.Cluster{
		Name: "web", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind}, HealthChecks: []*corev3.HealthCheck{{
			Timeout: durationpb.New(1e9), Interval: durationpb.New(1e9), UnhealthyThreshold: wrapperspb.UInt32(1), HealthyThreshold: wrapperspb.UInt32(1),
			HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: path}},
		}},
	}
	if kind == clusterv3.Cluster_EDS {
		k.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}}
	} else {
		k.LoadAssignment = assignmentOf(addresses...)
	}
	return k
}

func assignmentOf(addresses ...string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: "web", Endpoints: []*endpointv3.LocalityLbEndpoints{{Locality: &corev3.Locality{Zone: "a"}}}}
	for _, address := range addresses {
		a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80}}}},
		}}})
	}
	return a
}

func endpointsOf(k *source.Cluster) (n int) {
	for _, group := range k.Assignment.Message().GetEndpoints() {
		n += len(group.GetLbEndpoints())
	}
	return n
}

// TestTheUnionOverNodes has each endpoint once, and a cluster once more for each other way
// in which nodes check it.
func TestTheUnionOverNodes(t *testing.T) {
	for _, kind := range []clusterv3.Cluster_DiscoveryType{clusterv3.Cluster_EDS, clusterv3.Cluster_STATIC} {
		l := newUnionLab(t)
		plain := checkedCluster(kind, "/a", "10.0.0.1", "10.0.0.2")
		named := checkedCluster(kind, "/a", "10.0.0.2", "10.0.0.3")
		named.AltStatName = "checked the same way"
		different := checkedCluster(kind, "/b", "10.0.0.3")
		items := []*item{l.take(clusters, "web", plain), l.take(clusters, "web", named), l.take(clusters, "web", different)}
		if kind == clusterv3.Cluster_EDS {
			items = append(items, l.take(assignments, "web", assignmentOf("10.0.0.1", "10.0.0.2")), l.take(assignments, "web", assignmentOf("10.0.0.2", "10.0.0.3")))
		}
		got := l.clusters()
		second := versionName("web", items[2].body.group)
		if len(got) != 2 || got["web"] == nil || got[second] == nil {
			t.Fatalf("%s: got %v", kind, got)
		}
		for name, path := range map[string]string{"web": "/a", second: "/b"} {
			want := 3
			if kind == clusterv3.Cluster_STATIC && name == second {
				want = 1
			}
			if k := got[name]; k.ServiceName != name || endpointsOf(k) != want || k.HealthChecks[0].GetHttpHealthCheck().GetPath() != path {
				t.Errorf("%s: %s is %+v", kind, name, k)
			}
		}
		l.stock.release(items[2])
		if got = l.clusters(); len(got) != 1 || got["web"] == nil {
			t.Errorf("%s: without the third node, got %v", kind, got)
		}
		l.stock.release(items[:2]...)
		l.stock.release(items[3:]...)
		if got = l.clusters(); len(got) != 0 || len(l.stock.items) != 0 || l.stock.total != 0 || len(l.unions) != 0 {
			t.Errorf("%s: without any node, got %v, and endpoints of %d are kept", kind, got, len(l.unions))
		}
	}
}

// TestHowChecksAreSentCounts: clusters that choose the sockets of their checks in another way
// are not checked the same way. An address of the gateway's own machine is not sent to checkers.
func TestHowChecksAreSentCounts(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*clusterv3.Cluster)
		want   int
	}{
		"upstream_bind_config": {func(k *clusterv3.Cluster) {
			k.UpstreamBindConfig = &corev3.BindConfig{SourceAddress: &corev3.SocketAddress{Address: "10.9.9.9", PortSpecifier: &corev3.SocketAddress_PortValue{}}}
		}, 1},
		"transport_socket_matcher": {func(k *clusterv3.Cluster) {
			k.TransportSocketMatcher = &xdsmatcherv3.Matcher{}
		}, 2},
	} {
		l := newUnionLab(t)
		changed := checkedCluster(clusterv3.Cluster_STATIC, "/", "10.0.0.1")
		test.change(changed)
		l.take(clusters, "web", checkedCluster(clusterv3.Cluster_STATIC, "/", "10.0.0.1"))
		l.take(clusters, "web", changed)
		if got := l.clusters(); len(got) != test.want {
			t.Errorf("of two with another %s, got %v", name, got)
		}
	}
}

// TestALoneAssignment is a cluster of its name until a cluster uses it.
func TestALoneAssignment(t *testing.T) {
	l := newUnionLab(t)
	a := l.take(assignments, "web", assignmentOf("10.0.0.1"))
	if k := l.clusters()["web"]; k == nil || !k.Lone || endpointsOf(k) != 1 {
		t.Fatalf("alone it is %+v", k)
	}
	c := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/"))
	if k := l.clusters()["web"]; k == nil || k.Lone || endpointsOf(k) != 1 || len(k.HealthChecks) != 1 {
		t.Errorf("with its cluster it is %+v", k)
	}
	l.stock.release(c)
	if k := l.clusters()["web"]; k == nil || !k.Lone {
		t.Errorf("alone again it is %+v", k)
	}
	l.stock.release(a)
	if got := l.clusters(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestWhatCannotBeCheckedHasAReason: it passes, and is no reason for anything else to fail.
func TestWhatCannotBeCheckedHasAReason(t *testing.T) {
	l := newUnionLab(t)
	bad := checkedCluster(clusterv3.Cluster_STATIC, "/", "10.0.0.1")
	bad.HealthChecks[0].Timeout = nil
	l.take(clusters, "web", bad)
	if k := l.clusters()["web"]; k == nil || k.Rejected == "" {
		t.Errorf("it is %+v", k)
	}
	l.take(clusters, "web", checkedCluster(clusterv3.Cluster_STATIC, "/", "10.0.0.1"))
	if k := l.clusters()["web"]; k == nil || k.Rejected != "" {
		t.Errorf("with a valid one it is %+v", k)
	}
}
