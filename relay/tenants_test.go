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
	server *Server
	delta  bool
	all    []*tenant
	ids    health.EndpointID
	judged []*source.Cluster
}

// tenant is the stream of a data plane.
type tenant struct {
	*stream
	of       *tenants
	nonces   int
	versions [kinds]string // of web, or of the latest response: the latest that it accepted
	latest   *endpointv3.ClusterLoadAssignment
}

// renting runs a test of tenants in virtual time, by delta and by state of the world.
func renting(t *testing.T, test func(l *tenants)) {
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
		if !slices.ContainsFunc(set.Clusters, func(now *source.Cluster) bool { return now.Name == k.Name }) {
			u.RemovedAssignments, u.RemovedClusters = append(u.RemovedAssignments, k.Name), append(u.RemovedClusters, k.Name)
		}
	}
	l.judged = set.Clusters
	l.server.book.Update(u)
	l.server.book.SetHealth(verdicts)
}

// comes opens a stream of a node.
func (l *tenants) comes(node byte, typeURL string) *tenant {
	st := &stream{server: l.server, method: method{delta: l.delta, typeURL: typeURL}, node: [32]byte{node}, nodeID: fmt.Sprint(node), wake: make(chan struct{}, 1)}
	l.server.add(st)
	l.all = append(l.all, &tenant{stream: st, of: l})
	return l.all[len(l.all)-1]
}

// goes ends the stream.
func (t *tenant) goes() {
	t.of.all = slices.DeleteFunc(t.of.all, func(other *tenant) bool { return other == t })
	t.server.remove(t.stream)
	t.close()
}

// has has the control plane send web, and the data plane accept it.
func (t *tenant) has(web proto.Message) {
	t.of.Helper()
	t.accepts(t.sends(web))
}

// sends has the control plane send web, and returns the response as the data plane gets it.
func (t *tenant) sends(web proto.Message) []byte {
	t.of.Helper()
	packed, err := anypb.New(web)
	if err != nil {
		t.of.Fatal(err)
	}
	return t.sendsAll(kindOfMessage(web), packed)
}

// removes has the control plane send that there is no cluster web any more.
func (t *tenant) removes() []byte {
	t.of.Helper()
	return t.sendsAll(clusters)
}

// sendsAll has the control plane send a resource web, or that there is none.
func (t *tenant) sendsAll(k kind, packed ...*anypb.Any) []byte {
	t.of.Helper()
	t.nonces++
	nonce := fmt.Sprint(t.nonces)
	var m proto.Message = &discoveryv3.DiscoveryResponse{TypeUrl: k.typeURL(), VersionInfo: nonce, Nonce: nonce, Resources: packed}
	if t.of.delta {
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
		wire, err = t.respond(incoming{typeURL: k.typeURL(), wire: wire})
	}
	if err != nil {
		t.of.Fatal(err)
	}
	return wire
}

func kindOfMessage(m proto.Message) kind {
	if _, listed := m.(*endpointv3.ClusterLoadAssignment); listed {
		return assignments
	}
	return clusters
}

// returns opens another stream of a node, whose data plane says which version it has of the cluster and
// of the assignment web.
func (t *tenant) returns() *tenant {
	t.of.Helper()
	now := t.of.comes(t.node[0], t.method.typeURL)
	now.up, now.nonces = openStream{}, t.nonces
	for k := range kinds {
		version := t.versions[k]
		var ask proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: k.typeURL(), ResourceNames: []string{"web"}, VersionInfo: version}
		if t.of.delta {
			ask = &discoveryv3.DeltaDiscoveryRequest{
				TypeUrl: k.typeURL(), ResourceNamesSubscribe: []string{"web"}, InitialResourceVersions: map[string]string{"web": version},
			}
		}
		wire, err := proto.Marshal(ask)
		if err == nil {
			_, err = now.sendRequest(wire)
		}
		if err != nil {
			t.of.Fatal(err)
		}
		now.versions[k] = version
	}
	return now
}

// accepts answers a response.
func (t *tenant) accepts(wire []byte) {
	t.of.Helper()
	var ack proto.Message
	var packed []*anypb.Any
	r, d := &discoveryv3.DiscoveryResponse{}, &discoveryv3.DeltaDiscoveryResponse{}
	err := proto.Unmarshal(wire, r)
	ack = &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo(), ResourceNames: []string{"web"}}
	packed = r.GetResources()
	typeURL, version := r.GetTypeUrl(), r.GetVersionInfo()
	if t.of.delta {
		err = proto.Unmarshal(wire, d)
		ack = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: d.GetTypeUrl(), ResponseNonce: d.GetNonce()}
		packed, typeURL = nil, d.GetTypeUrl()
		for _, r := range d.GetResources() {
			packed, version = append(packed, r.GetResource()), r.GetVersion()
		}
	}
	if k, ours := kindOf(typeURL); ours {
		t.versions[k] = version
	}
	for _, resource := range packed {
		if a := (&endpointv3.ClusterLoadAssignment{}); resource.MessageIs(a) {
			if err := resource.UnmarshalTo(a); err != nil {
				t.of.Fatal(err)
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
		t.of.Fatal(err)
	}
}

// sees returns the health that its endpoints have for a data plane, once all has settled.
func (t *tenant) sees() string {
	t.of.Helper()
	t.of.settle()
	var all []string
	for _, e := range t.latest.GetEndpoints()[0].GetLbEndpoints() {
		all = append(all, e.GetHealthStatus().String())
	}
	return strings.Join(all, " ")
}

// settle passes some seconds, in which data planes take what hdsd has to say.
func (l *tenants) settle() {
	l.Helper()
	for range 5 {
		time.Sleep(time.Second)
		synctest.Wait()
		for _, t := range l.all {
			for wire := t.nextPush(); wire != nil; wire = t.nextPush() {
				t.accepts(wire)
			}
		}
	}
}

// checks returns which endpoints are checked in which way, once all has settled: of each path, the
// last bytes of addresses.
func (l *tenants) checks() string {
	l.Helper()
	l.settle()
	all := map[string]string{}
	for _, k := range l.server.catalogue.Latest().Clusters {
		var addresses []string
		for _, group := range k.Assignment.Message().GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				addresses = append(addresses, strings.TrimPrefix(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), "10.0.0."))
			}
		}
		slices.Sort(addresses)
		for _, check := range k.HealthChecks {
			all[check.GetHttpHealthCheck().GetPath()] += strings.Join(addresses, ",")
		}
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, path+" "+all[path])
	}
	return strings.Join(lines, " ")
}

func (l *tenants) wantChecks(after, want string) {
	l.Helper()
	if got := l.checks(); got != want {
		l.Errorf("%s: %s, want %s", after, got, want)
	}
}

// TestAVersionJudgesTheEndpointsOfItsNodes alone.
func TestAVersionJudgesTheEndpointsOfItsNodes(t *testing.T) {
	t.Parallel()
	renting(t, func(l *tenants) {
		way := func(path string) *clusterv3.Cluster { return checkedCluster(clusterv3.Cluster_EDS, path) }
		list := func(addresses ...string) *endpointv3.ClusterLoadAssignment { return assignmentOf(addresses...) }
		a, b, c := l.comes('a', ""), l.comes('b', ""), l.comes('c', "")
		a.has(way("/a"))
		a.has(list("10.0.0.1", "10.0.0.2"))
		l.wantChecks("one", "/a 1,2")
		b.has(way("/a"))
		b.has(list("10.0.0.2", "10.0.0.3"))
		l.wantChecks("two alike", "/a 1,2,3")
		b.has(way("/b"))
		l.wantChecks("b has another check", "/a 1,2 /b 2,3")
		c.has(way("/b"))
		c.has(list("10.0.0.1", "10.0.0.2"))
		l.wantChecks("c has b's check and a's endpoints", "/a 1,2 /b 1,2,3")
		a.has(list("10.0.0.4"))
		l.wantChecks("a has other endpoints", "/a 4 /b 1,2,3")
		a.has(way("/b"))
		l.wantChecks("all alike", "/b 1,2,3,4")
		a.has(way("/a"))
		l.wantChecks("a is back", "/a 4 /b 1,2,3")
		b.goes()
		l.wantChecks("b has gone", "/a 4 /b 1,2,3")
		time.Sleep(time.Minute)
		l.wantChecks("b is forgotten", "/a 4 /b 1,2")
		a.has(way("/c"))
		c.has(way("/c"))
		l.wantChecks("all have a new one", "/c 1,2,4")
		for _, t := range []*tenant{a, c} {
			t.goes()
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
	renting(t, func(l *tenants) {
		a, b := l.comes('a', ""), l.comes('b', "")
		a.has(checkedCluster(clusterv3.Cluster_STATIC, "/a", "10.0.0.1", "10.0.0.2"))
		b.has(checkedCluster(clusterv3.Cluster_STATIC, "/b", "10.0.0.2", "10.0.0.3"))
		l.wantChecks("two versions", "/a 1,2 /b 2,3")
		a.has(checkedCluster(clusterv3.Cluster_STATIC, "/b", "10.0.0.1"))
		l.wantChecks("all alike", "/b 1,2,3")
		a.goes()
		b.goes()
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
	renting(t, func(l *tenants) {
		var all [2][2]*tenant // by node and kind
		for i, path := range []string{"/a", "/b"} {
			for k := range kinds {
				all[i][k] = l.comes(byte('a'+i), k.typeURL())
			}
			all[i][clusters].has(checkedCluster(clusterv3.Cluster_EDS, path))
			all[i][assignments].has(assignmentOf("10.0.0.1", fmt.Sprint("10.0.0.", i+2)))
		}
		see := func(after, a, b string) {
			l.Helper()
			for i, want := range []string{a, b} {
				if got := all[i][assignments].sees(); got != want {
					l.Errorf("%s, node %d sees %s, want %s", after, i, got, want)
				}
			}
		}
		up, down := "HEALTHY HEALTHY", "UNHEALTHY UNHEALTHY"
		l.wantChecks("two versions", "/a 1,2 /b 1,3")
		see("at first", up, down)
		all[0][clusters].has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		all[1][clusters].has(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		l.wantChecks("two versions, the other way round", "/a 1,3 /b 1,2")
		see("the other way round", down, up)
		all[1][clusters].goes()
		all[1][assignments].has(assignmentOf("10.0.0.1", "10.0.0.2"))
		see("without its clusters", down, up)
		all[1][clusters] = l.comes('b', clusters.typeURL())
		all[0][clusters].has(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		all[1][clusters].has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		see("with its clusters again", up, down)
		for _, path := range []string{"/a", "/b"} { // c has all that a may have
			c := l.comes('c'+path[1], "")
			c.has(checkedCluster(clusterv3.Cluster_EDS, path))
			c.has(assignmentOf("10.0.0.1", "10.0.0.3"))
		}
		see("beside others", up, down)
		all[0][clusters].has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		see("with another version that others have", down, down)
		for len(l.all) > 0 {
			l.all[0].goes()
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
	renting(t, func(l *tenants) {
		a, b := l.comes('a', ""), l.comes('b', "")
		a.has(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		a.has(assignmentOf("10.0.0.1"))
		l.settle()
		a.goes()
		b.has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		b.has(assignmentOf("10.0.0.2"))
		l.wantChecks("a has gone, and b came", "/a 1 /b 2")
	})
}

// TestAVersionJudgesNothingThatOthersMayHave: a data plane that has another version has not answered
// the latest health, or never does.
func TestAVersionJudgesNothingThatOthersMayHave(t *testing.T) {
	t.Parallel()
	for _, stays := range []bool{true, false} {
		renting(t, func(l *tenants) {
			a := l.comes('a', "")
			a.has(checkedCluster(clusterv3.Cluster_EDS, "/a"))
			a.has(assignmentOf("10.0.0.1"))
			l.settle()
			l.server.book.SetHealth([]publish.Health{{ID: l.ids, Status: health.Unhealthy}})
			if a.nextPush() == nil { // which it does not answer
				l.Fatal("it is sent no health")
			}
			l.all = nil
			if !stays {
				l.server.remove(a.stream)
				a.close()
			}
			b := l.comes('b', "")
			b.has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
			b.has(assignmentOf("10.0.0.2"))
			l.settle()
			if stays && a.nextPush() != nil {
				l.Error("it is sent more before it answers")
			}
			l.wantChecks(fmt.Sprint("a stays ", stays), "/a 1 /b 2")
			if stays {
				a.goes()
			}
			b.goes()
			time.Sleep(3 * time.Minute)
			l.wantChecks("both are forgotten", "")
		})
	}
}
