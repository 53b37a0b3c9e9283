package relay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

// tenants are data planes of one relay. By the check of "/a" all is healthy, by others it is not.
type tenants struct {
	*testing.T
	server  *Server
	delta   bool
	streams []*tenant
	ids     health.EndpointID
	judged  []*source.Cluster
}

// tenant is the stream of a data plane.
type tenant struct {
	*stream
	tenants  *tenants
	nonces   int
	versions [kinds]string // of web, or of the latest response: the latest that it accepted
	latest   *endpointv3.ClusterLoadAssignment
}

// withTenants runs a test of tenants in virtual time, by delta and by state of the world.
func withTenants(t *testing.T, test func(l *tenants)) {
	for _, delta := range []bool{true, false} {
		t.Run(fmt.Sprint("delta=", delta), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &tenants{T: t, delta: delta, server: NewServer(Options{
					Health: true, Keep: time.Minute, MaxClusterEndpoints: 1000, MaxEndpoints: 1000,
					Settle: func(context.Context) error { return nil }, Checks: func(*clusterv3.Cluster, uint64) bool { return true },
				})}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = l.server.catalogue.Run(ctx, l.judge) }()
				test(l)
				cancel()
			})
		})
	}
}

// judge stands for hdsd's core.
func (l *tenants) judge(set *source.Set) {
	var u publish.Update
	var verdicts []publish.Health
	for _, k := range set.Clusters {
		if slices.Contains(l.judged, k) {
			continue
		}
		a := publish.Assignment{Name: k.ServiceName, Wire: k.Assignment.Wire()}
		for _, group := range k.Assignment.Message().GetEndpoints() {
			var ids [][]health.EndpointID
			for range group.GetLbEndpoints() {
				status := health.Unhealthy
				if !k.Lone && k.HealthChecks[0].GetHttpHealthCheck().GetPath() == "/a" {
					status = health.Healthy
				}
				l.ids++
				ids, verdicts = append(ids, []health.EndpointID{l.ids}), append(verdicts, publish.Health{ID: l.ids, Status: status})
			}
			a.IDs = append(a.IDs, ids)
		}
		u.Assignments = append(u.Assignments, a)
		u.Clusters = append(u.Clusters, publish.Cluster{Name: k.Name, Checked: true})
	}
	for _, k := range l.judged {
		if !slices.ContainsFunc(set.Clusters, func(current *source.Cluster) bool { return current.Name == k.Name }) {
			u.RemovedAssignments, u.RemovedClusters = append(u.RemovedAssignments, k.Name), append(u.RemovedClusters, k.Name)
		}
	}
	l.judged = set.Clusters
	l.server.book.Update(u)
	l.server.book.SetHealth(verdicts)
}

// open opens a stream of a node.
func (l *tenants) open(node byte, typeURL string) *tenant {
	st := &stream{server: l.server, method: method{delta: l.delta, typeURL: typeURL}, node: [32]byte{node}, nodeID: fmt.Sprint(node), wake: make(chan struct{}, 1)}
	l.server.add(st)
	l.streams = append(l.streams, &tenant{stream: st, tenants: l})
	return l.streams[len(l.streams)-1]
}

// end ends the stream.
func (t *tenant) end() {
	t.tenants.streams = slices.DeleteFunc(t.tenants.streams, func(x *tenant) bool { return x == t })
	t.server.remove(t.stream)
	t.close()
}

// give has the control plane send web, and the data plane accept it.
func (t *tenant) give(web proto.Message) {
	t.tenants.Helper()
	t.accept(t.send(web))
}

// send has the control plane send web, and returns the response as the data plane gets it.
func (t *tenant) send(web proto.Message) []byte {
	t.tenants.Helper()
	packed, err := anypb.New(web)
	if err != nil {
		t.tenants.Fatal(err)
	}
	return t.sendAll(kindOfMessage(web), packed)
}

// remove has the control plane send that there is no cluster web any more.
func (t *tenant) remove() []byte {
	t.tenants.Helper()
	return t.sendAll(clusters)
}

// sendAll has the control plane send a resource web, or that there is none.
func (t *tenant) sendAll(k kind, packed ...*anypb.Any) []byte {
	t.tenants.Helper()
	t.nonces++
	nonce := fmt.Sprint(t.nonces)
	var m proto.Message = &discoveryv3.DiscoveryResponse{TypeUrl: k.typeURL(), VersionInfo: nonce, Nonce: nonce, Resources: packed}
	if t.tenants.delta {
		d := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: k.typeURL(), Nonce: nonce}
		for _, resource := range packed {
			d.Resources = append(d.Resources, &discoveryv3.Resource{Name: "web", Version: nonce, Resource: resource})
		}
		if len(packed) == 0 {
			d.RemovedResources = []string{"web"}
		}
		m = d
	}
	wire, err := proto.Marshal(m)
	if err == nil {
		wire, err = t.respond(arrival{typeURL: k.typeURL(), wire: wire})
	}
	if err != nil {
		t.tenants.Fatal(err)
	}
	return wire
}

func kindOfMessage(m proto.Message) kind {
	if _, listed := m.(*endpointv3.ClusterLoadAssignment); listed {
		return assignments
	}
	return clusters
}

// reopen opens another stream of a node, and its data plane says which version it has of the cluster and
// of the assignment web.
func (t *tenant) reopen() *tenant {
	t.tenants.Helper()
	next := t.tenants.open(t.node[0], t.method.typeURL)
	next.upstream, next.nonces = openStream{}, t.nonces
	for k := range kinds {
		version := t.versions[k]
		var ask proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: k.typeURL(), ResourceNames: []string{"web"}, VersionInfo: version}
		if t.tenants.delta {
			ask = &discoveryv3.DeltaDiscoveryRequest{
				TypeUrl: k.typeURL(), ResourceNamesSubscribe: []string{"web"}, InitialResourceVersions: map[string]string{"web": version},
			}
		}
		wire, err := proto.Marshal(ask)
		if err == nil {
			_, err = next.sendRequest(wire)
		}
		if err != nil {
			t.tenants.Fatal(err)
		}
		next.versions[k] = version
	}
	return next
}

// accept answers a response.
func (t *tenant) accept(wire []byte) {
	t.tenants.Helper()
	var ack proto.Message
	var packed []*anypb.Any
	r, d := &discoveryv3.DiscoveryResponse{}, &discoveryv3.DeltaDiscoveryResponse{}
	err := proto.Unmarshal(wire, r)
	ack = &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo(), ResourceNames: []string{"web"}}
	packed = r.GetResources()
	typeURL, version := r.GetTypeUrl(), r.GetVersionInfo()
	if t.tenants.delta {
		err = proto.Unmarshal(wire, d)
		ack = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: d.GetTypeUrl(), ResponseNonce: d.GetNonce()}
		packed, typeURL = nil, d.GetTypeUrl()
		for _, r := range d.GetResources() {
			packed, version = append(packed, r.GetResource()), r.GetVersion()
		}
	}
	if k, relayed := kindOf(typeURL); relayed {
		t.versions[k] = version
	}
	for _, resource := range packed {
		if a := (&endpointv3.ClusterLoadAssignment{}); resource.MessageIs(a) {
			if err := resource.UnmarshalTo(a); err != nil {
				t.tenants.Fatal(err)
			}
			t.latest = a
		}
	}
	if err == nil {
		if wire, err = proto.Marshal(ack); err == nil {
			_, err = t.sendRequest(wire)
		}
	}
	if err != nil {
		t.tenants.Fatal(err)
	}
}

// health returns the health that its endpoints have for a data plane, once all has settled.
func (t *tenant) health() string {
	t.tenants.Helper()
	t.tenants.settle()
	var statuses []string
	for _, e := range t.latest.GetEndpoints()[0].GetLbEndpoints() {
		statuses = append(statuses, e.GetHealthStatus().String())
	}
	return strings.Join(statuses, " ")
}

// settle passes some seconds, in which data planes take what hdsd has to say.
func (l *tenants) settle() {
	l.Helper()
	for range 5 {
		time.Sleep(time.Second)
		synctest.Wait()
		for _, t := range l.streams {
			for wire := t.nextPush(); wire != nil; wire = t.nextPush() {
				t.accept(wire)
			}
		}
	}
}

// checks returns which endpoints are checked in which way, once all has settled: of each path, the
// last bytes of addresses.
func (l *tenants) checks() string {
	l.Helper()
	l.settle()
	byPath := map[string]string{}
	for _, k := range l.server.catalogue.Latest().Clusters {
		var addresses []string
		for _, group := range k.Assignment.Message().GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				addresses = append(addresses, strings.TrimPrefix(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), "10.0.0."))
			}
		}
		slices.Sort(addresses)
		for _, check := range k.HealthChecks {
			byPath[check.GetHttpHealthCheck().GetPath()] += strings.Join(addresses, ",")
		}
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		lines = append(lines, path+" "+byPath[path])
	}
	return strings.Join(lines, " ")
}

func (l *tenants) wantChecks(moment, want string) {
	l.Helper()
	if got := l.checks(); got != want {
		l.Errorf("%s: %s, want %s", moment, got, want)
	}
}

// TestAVersionJudgesTheEndpointsOfItsNodes alone.
func TestAVersionJudgesTheEndpointsOfItsNodes(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		way := func(path string) *clusterv3.Cluster { return checkedCluster(clusterv3.Cluster_EDS, path) }
		list := func(addresses ...string) *endpointv3.ClusterLoadAssignment { return assignmentOf(addresses...) }
		a, b, c := l.open('a', ""), l.open('b', ""), l.open('c', "")
		a.give(way("/a"))
		a.give(list("10.0.0.1", "10.0.0.2"))
		l.wantChecks("one", "/a 1,2")
		b.give(way("/a"))
		b.give(list("10.0.0.2", "10.0.0.3"))
		l.wantChecks("two alike", "/a 1,2,3")
		b.give(way("/b"))
		l.wantChecks("b has another check", "/a 1,2 /b 2,3")
		c.give(way("/b"))
		c.give(list("10.0.0.1", "10.0.0.2"))
		l.wantChecks("c has b's check and a's endpoints", "/a 1,2 /b 1,2,3")
		a.give(list("10.0.0.4"))
		l.wantChecks("a has other endpoints", "/a 4 /b 1,2,3")
		a.give(way("/b"))
		l.wantChecks("all alike", "/b 1,2,3,4")
		a.give(way("/a"))
		l.wantChecks("a is back", "/a 4 /b 1,2,3")
		b.end()
		l.wantChecks("b has gone", "/a 4 /b 1,2,3")
		time.Sleep(time.Minute)
		l.wantChecks("b is forgotten", "/a 4 /b 1,2")
		a.give(way("/c"))
		c.give(way("/c"))
		l.wantChecks("all have a new one", "/c 1,2,4")
		for _, t := range []*tenant{a, c} {
			t.end()
		}
		time.Sleep(2 * time.Minute)
		l.wantChecks("all have gone", "")
		if n := len(l.server.stock.items) + len(l.server.catalogue.unions); n != 0 {
			l.Errorf("%d resources and unions are kept", n)
		}
	})
}

// TestAVersionJudgesTheEndpointsThatItsClustersList alone.
func TestAVersionJudgesTheEndpointsThatItsClustersList(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		a, b := l.open('a', ""), l.open('b', "")
		a.give(checkedCluster(clusterv3.Cluster_STATIC, "/a", "10.0.0.1", "10.0.0.2"))
		b.give(checkedCluster(clusterv3.Cluster_STATIC, "/b", "10.0.0.2", "10.0.0.3"))
		l.wantChecks("two versions", "/a 1,2 /b 2,3")
		a.give(checkedCluster(clusterv3.Cluster_STATIC, "/b", "10.0.0.1"))
		l.wantChecks("all alike", "/b 1,2,3")
		a.end()
		b.end()
		time.Sleep(2 * time.Minute)
		l.wantChecks("all have gone", "")
		if n := len(l.server.stock.items) + len(l.server.catalogue.unions); n != 0 {
			l.Errorf("%d resources and unions are kept", n)
		}
	})
}

// TestStreamsOfOneTypeBelongToTheirNode: which version of a cluster a node has, its other stream
// says, also while that is away, and once it is back.
func TestStreamsOfOneTypeBelongToTheirNode(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		var streams [2][2]*tenant // by node and kind
		for i, path := range []string{"/a", "/b"} {
			for k := range kinds {
				streams[i][k] = l.open(byte('a'+i), k.typeURL())
			}
			streams[i][clusters].give(checkedCluster(clusterv3.Cluster_EDS, path))
			streams[i][assignments].give(assignmentOf("10.0.0.1", fmt.Sprint("10.0.0.", i+2)))
		}
		see := func(moment, a, b string) {
			l.Helper()
			for i, want := range []string{a, b} {
				if got := streams[i][assignments].health(); got != want {
					l.Errorf("%s, node %d sees %s, want %s", moment, i, got, want)
				}
			}
		}
		healthy, unhealthy := "HEALTHY HEALTHY", "UNHEALTHY UNHEALTHY"
		l.wantChecks("two versions", "/a 1,2 /b 1,3")
		see("at first", healthy, unhealthy)
		streams[0][clusters].give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		streams[1][clusters].give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		l.wantChecks("two versions, the other way round", "/a 1,3 /b 1,2")
		see("the other way round", unhealthy, healthy)
		streams[1][clusters].end()
		streams[1][assignments].give(assignmentOf("10.0.0.1", "10.0.0.2"))
		see("without its clusters", unhealthy, healthy)
		streams[1][clusters] = l.open('b', clusters.typeURL())
		streams[0][clusters].give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		streams[1][clusters].give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		see("with its clusters again", healthy, unhealthy)
		for _, path := range []string{"/a", "/b"} { // c has all that a may have
			c := l.open('c'+path[1], "")
			c.give(checkedCluster(clusterv3.Cluster_EDS, path))
			c.give(assignmentOf("10.0.0.1", "10.0.0.3"))
		}
		see("beside others", healthy, unhealthy)
		streams[0][clusters].give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		see("with another version that others have", unhealthy, unhealthy)
		for len(l.streams) > 0 {
			l.streams[0].end()
		}
		time.Sleep(2 * time.Minute)
		l.wantChecks("all have gone", "")
		if n := len(l.server.stock.items) + len(l.server.catalogue.unions) + len(l.server.nodes.all); n != 0 {
			l.Errorf("%d resources, unions and nodes are kept", n)
		}
	})
}

// TestANodeThatHasGoneKeepsItsVersion: a version that comes later does not judge its endpoints.
func TestANodeThatHasGoneKeepsItsVersion(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		a, b := l.open('a', ""), l.open('b', "")
		a.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		a.give(assignmentOf("10.0.0.1"))
		l.settle()
		a.end()
		b.give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		b.give(assignmentOf("10.0.0.2"))
		l.wantChecks("a has gone, and b came", "/a 1 /b 2")
	})
}

// TestAVersionJudgesNothingThatOthersMayHave: a data plane that has another version has not answered
// the latest health, or never does.
func TestAVersionJudgesNothingThatOthersMayHave(t *testing.T) {
	t.Parallel()
	for _, stays := range []bool{true, false} {
		withTenants(t, func(l *tenants) {
			a := l.open('a', "")
			a.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
			a.give(assignmentOf("10.0.0.1"))
			l.settle()
			l.server.book.SetHealth([]publish.Health{{ID: l.ids, Status: health.Unhealthy}})
			if a.nextPush() == nil { // which it does not answer
				l.Fatal("it is sent no health")
			}
			l.streams = nil
			if !stays {
				l.server.remove(a.stream)
				a.close()
			}
			b := l.open('b', "")
			b.give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
			b.give(assignmentOf("10.0.0.2"))
			l.settle()
			if stays && a.nextPush() != nil {
				l.Error("it is sent more before it answers")
			}
			l.wantChecks(fmt.Sprint("a stays ", stays), "/a 1 /b 2")
			if stays {
				a.end()
			}
			b.end()
			time.Sleep(3 * time.Minute)
			l.wantChecks("both are forgotten", "")
		})
	}
}
