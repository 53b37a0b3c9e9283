package relay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// modelNode is a data plane as a model of tenants knows it.
type modelNode struct {
	types     [kinds]string  // of the streams by which it takes the kinds; the same twice: it has one stream
	streams   [kinds]*tenant // nil: it is away
	path      string         // of the check of its version
	addresses []string       // last bytes of the addresses of its endpoints
}

// toggle ends the stream for a kind, or begins it.
func (n *modelNode) toggle(l *tenants, id byte, k kind) {
	current := n.streams[k]
	if current != nil {
		current.end()
		current = nil
	} else {
		current = l.open(id, n.types[k])
	}
	for peer := range kinds {
		if n.types[peer] == n.types[k] {
			n.streams[peer] = current
		}
	}
}

// step has a node do something, and returns what.
func (n *modelNode) step(l *tenants, id byte, random *rand.Rand) string {
	k := kind(random.IntN(int(kinds)))
	switch {
	case n.streams[k] == nil || random.IntN(4) == 0:
		n.toggle(l, id, k)
		return fmt.Sprint("stream for ", k, ": ", n.streams[k] != nil)
	case k == clusters:
		n.path = []string{"/a", "/b", "/c"}[random.IntN(3)]
		n.streams[k].give(checkedCluster(clusterv3.Cluster_EDS, n.path))
		return n.path
	}
	n.addresses = nil
	for range 1 + random.IntN(2) {
		n.addresses = append(n.addresses, fmt.Sprint(1+random.IntN(9)))
	}
	slices.Sort(n.addresses)
	n.addresses = slices.Compact(n.addresses)
	var addresses []string
	for _, end := range n.addresses {
		addresses = append(addresses, "10.0.0."+end)
	}
	n.streams[k].give(assignmentOf(addresses...))
	return fmt.Sprint(n.addresses)
}

// TestAVersionJudgesTheEndpointsOfItsNodesInAnyOrder in which their streams come, bring other versions
// and endpoints, and go. So it does while one of a node's streams is away.
func TestAVersionJudgesTheEndpointsOfItsNodesInAnyOrder(t *testing.T) {
	t.Parallel()
	ways := [][kinds]string{{}, {clusters.typeURL(), assignments.typeURL()}, {clusters.typeURL(), ""}}
	for seed := range uint64(100) {
		withTenants(t, func(l *tenants) {
			l.server.memory.ttl = time.Hour
			time.Sleep(time.Minute) // now no version is awaited any more
			random := rand.New(rand.NewPCG(seed, 0))
			nodes := make([]modelNode, 3)
			for i := range nodes {
				nodes[i].types = ways[random.IntN(len(ways))]
			}
			for steps := range 60 {
				i := random.IntN(len(nodes))
				t.Log(l.Name(), " step ", steps, ": ", i, " ", nodes[i].step(l, byte('a'+i), random))
				if random.IntN(3) > 0 || slices.ContainsFunc(nodes, func(n modelNode) bool { return n.path == "" || n.addresses == nil }) {
					continue
				}
				want := map[string][]string{}
				for i := range nodes {
					want[nodes[i].path] = append(want[nodes[i].path], nodes[i].addresses...)
				}
				var lines []string
				for _, path := range slices.Sorted(maps.Keys(want)) {
					slices.Sort(want[path])
					lines = append(lines, path+" "+strings.Join(slices.Compact(want[path]), ","))
				}
				l.wantChecks(fmt.Sprint("seed ", seed, ", step ", steps), strings.Join(lines, " "))
				for i := range nodes {
					n := &nodes[i]
					st := n.streams[assignments]
					if st == nil || st.latest == nil {
						continue
					}
					health := "UNHEALTHY"
					if n.path == "/a" {
						health = "HEALTHY"
					}
					if got := st.health(); strings.Trim(strings.ReplaceAll(" "+got, " "+health, ""), " ") != "" {
						l.Errorf("seed %d, step %d: by %s, node %d sees %s", seed, steps, n.path, i, got)
					}
				}
				if l.Failed() {
					return
				}
			}
		})
	}
}

// TestAStreamThatEndsLeavesOthersOfItsNode, also those that have come since its first kind left.
func TestAStreamThatEndsLeavesOthersOfItsNode(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		first, second := l.open('a', ""), l.open('a', "")
		first.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		first.give(assignmentOf("10.0.0.1"))
		l.server.nodes.leave(first.stream, first.ledgers[clusters])
		second.give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		l.server.nodes.leave(first.stream, first.ledgers[assignments])
		if n := l.server.nodes.find(second.node); n == nil || n != second.ledgers[clusters].links.node {
			l.Error("the stream that came is not known by its node any more")
		}
	})
}

// TestARefusalOfSeveralClustersLeavesNoVersionInDoubt by delta: a cluster with another check that comes
// with others which the data plane may refuse comes again, alone.
func TestARefusalOfSeveralClustersLeavesNoVersionInDoubt(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		if !l.delta {
			return // the clusters of a response have to be whole
		}
		for _, takes := range []bool{true, false} {
			a := l.open('a', "")
			a.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
			a.give(assignmentOf("10.0.0.1"))
			l.wantChecks("at first", "/a 1")
			m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: clusters.typeURL(), Nonce: "several"}
			for name, path := range map[string]string{"web": "/b", "other": "/other"} {
				c := checkedCluster(clusterv3.Cluster_EDS, path)
				c.Name = name
				packed, err := anypb.New(c)
				if err != nil {
					l.Fatal(err)
				}
				m.Resources = append(m.Resources, &discoveryv3.Resource{Name: name, Version: "several", Resource: packed})
			}
			wire, err := proto.Marshal(m)
			if err == nil {
				wire, err = a.respond(arrival{typeURL: clusters.typeURL(), wire: wire})
			}
			if err != nil {
				l.Fatal(err)
			}
			a.refuse(wire)
			push := a.nextPush()
			d := &discoveryv3.DeltaDiscoveryResponse{}
			if err := proto.Unmarshal(push, d); err != nil || d.GetTypeUrl() != clusters.typeURL() || len(d.GetResources()) != 1 || d.GetResources()[0].GetName() != "web" {
				l.Fatalf("after the refusal, it is sent %v, %v", d, err)
			}
			checks, health := "/b 1", "UNHEALTHY"
			if takes {
				a.accept(push)
			} else {
				a.refuse(push)
				checks, health = "/a 1", "HEALTHY"
			}
			if got := l.checks(); strings.TrimSuffix(got, " /other ") != checks {
				l.Errorf("it takes the cluster: %t: %s, want %s", takes, got, checks)
			}
			if got := a.health(); got != health {
				l.Errorf("it takes the cluster: %t: it sees %s, want %s", takes, got, health)
			}
			a.end()
			time.Sleep(2 * time.Minute)
		}
	})
}

// refuse refuses a response.
func (t *tenant) refuse(wire []byte) {
	t.tenants.Helper()
	refusal := &rpcstatus.Status{Message: "no"}
	r, d := &discoveryv3.DiscoveryResponse{}, &discoveryv3.DeltaDiscoveryResponse{}
	var nack proto.Message
	var err error
	if t.tenants.delta {
		err = proto.Unmarshal(wire, d)
		nack = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: d.GetTypeUrl(), ResponseNonce: d.GetNonce(), ErrorDetail: refusal}
	} else {
		err = proto.Unmarshal(wire, r)
		k, _ := kindOf(r.GetTypeUrl())
		nack = &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: refusal, VersionInfo: t.versions[k], ResourceNames: []string{"web"}}
	}
	if err == nil {
		if wire, err = proto.Marshal(nack); err == nil {
			_, err = t.sendRequest(wire)
		}
	}
	if err != nil {
		t.tenants.Fatal(err)
	}
}
