package relay

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestAnAssignmentThatIsBackIsOfTheVersionsOfNow: the one that it was of has gone meanwhile.
func TestAnAssignmentThatIsBackIsOfTheVersionsOfNow(t *testing.T) {
	t.Parallel()
	renting(t, func(l *tenants) {
		b, config, listed := l.comes('b', ""), l.comes('a', clusters.typeURL()), l.comes('a', assignments.typeURL())
		b.has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		b.has(assignmentOf("10.0.0.2"))
		config.has(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		listed.has(assignmentOf("10.0.0.1"))
		l.wantChecks("at first", "/a 1 /b 2")
		config.goes()
		time.Sleep(45 * time.Second)
		listed.goes()
		time.Sleep(20 * time.Second) // the cluster is remembered for a minute
		l.wantChecks("without the cluster", "/b 2")
		var ask proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNames: []string{"web"}}
		if l.delta {
			ask = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{"web"}}
		}
		wire, err := proto.Marshal(ask)
		if err == nil {
			_, err = l.comes('a', assignments.typeURL()).sendRequest(wire)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.wantChecks("the assignment is back", "/b 1,2")
		l.comes('a', clusters.typeURL()).has(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		l.wantChecks("with another cluster", "/b 1,2")
	})
}

// TestARefusalLeavesWhatTheClientHadBefore, also if it had that by an earlier stream: by state of the
// world, nothing says what it has of a response that it refuses.
func TestARefusalLeavesWhatTheClientHadBefore(t *testing.T) {
	t.Parallel()
	renting(t, func(l *tenants) {
		if l.delta {
			return // it says what it has
		}
		say := func(st *tenant, nonce string, all ...*clusterv3.Cluster) {
			t.Helper()
			m := &discoveryv3.DiscoveryResponse{TypeUrl: clusters.typeURL(), VersionInfo: nonce, Nonce: nonce}
			for _, c := range all {
				packed, err := anypb.New(c)
				if err != nil {
					t.Fatal(err)
				}
				m.Resources = append(m.Resources, packed)
			}
			wire, err := proto.Marshal(m)
			if err == nil {
				_, err = st.respond(incoming{typeURL: clusters.typeURL(), wire: wire})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		ask := func(st *tenant, nonce string, refusal *rpcstatus.Status) {
			t.Helper()
			wire, err := proto.Marshal(&discoveryv3.DiscoveryRequest{
				TypeUrl: clusters.typeURL(), VersionInfo: "good", ResourceNames: []string{"web", "other"}, ResponseNonce: nonce, ErrorDetail: refusal,
			})
			if err == nil {
				_, err = st.sendRequest(wire)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		bad := []*clusterv3.Cluster{checkedCluster(clusterv3.Cluster_STATIC, "/b", "10.0.0.2"), checkedCluster(clusterv3.Cluster_STATIC, "/other", "10.0.0.3")}
		bad[1].Name = "other"
		comes := func() *tenant {
			st := l.comes('a', "")
			st.up, l.all = openStream{}, nil // it takes nothing that is not said here
			ask(st, "", nil)
			return st
		}
		before := comes()
		say(before, "good", checkedCluster(clusterv3.Cluster_STATIC, "/a", "10.0.0.1"))
		ask(before, "good", nil)
		say(before, "bad", bad...)
		ask(before, "bad", &rpcstatus.Status{Message: "no"})
		before.goes()
		now := comes()
		say(now, "bad", bad...)
		ask(now, "bad", &rpcstatus.Status{Message: "no"})
		time.Sleep(3 * time.Minute) // nothing is remembered any more
		l.wantChecks("it has refused others", "/a 1 /b 2 /other 3")
		say(now, "best", checkedCluster(clusterv3.Cluster_STATIC, "/c", "10.0.0.4"))
		ask(now, "best", nil)
		l.wantChecks("it accepts another", "/c 4")
		now.goes()
		time.Sleep(3 * time.Minute)
		l.wantChecks("it has gone", "")
	})
}
