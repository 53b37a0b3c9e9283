package relay

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/relay/message"
)

// TestAnAssignmentThatIsBackIsOfTheVersionsOfNow: the one that it was of has gone meanwhile.
func TestAnAssignmentThatIsBackIsOfTheVersionsOfNow(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		b, config, listed := l.open('b', ""), l.open('a', clusters.typeURL()), l.open('a', assignments.typeURL())
		b.give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		b.give(assignmentOf("10.0.0.2"))
		config.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		listed.give(assignmentOf("10.0.0.1"))
		l.wantChecks("at first", "/a 1 /b 2")
		config.end()
		time.Sleep(45 * time.Second)
		listed.end()
		time.Sleep(20 * time.Second) // the cluster is remembered for a minute
		l.wantChecks("without the cluster", "/b 2")
		var ask proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNames: []string{"web"}}
		if l.delta {
			ask = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{"web"}}
		}
		wire, err := proto.Marshal(ask)
		if err == nil {
			_, err = l.open('a', assignments.typeURL()).sendRequest(wire)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.wantChecks("the assignment is back", "/b 1,2")
		l.open('a', clusters.typeURL()).give(checkedCluster(clusterv3.Cluster_EDS, "/b"))
		l.wantChecks("with another cluster", "/b 1,2")
	})
}

// TestARefusalLeavesWhatTheClientHadBefore, also if it had that by an earlier stream: by state of the
// world, nothing says what it has of a response that it refuses.
func TestARefusalLeavesWhatTheClientHadBefore(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		if l.delta {
			return // it says what it has
		}
		say := func(st *tenant, nonce string, sent ...*clusterv3.Cluster) {
			t.Helper()
			m := &discoveryv3.DiscoveryResponse{TypeUrl: clusters.typeURL(), VersionInfo: nonce, Nonce: nonce}
			for _, c := range sent {
				packed, err := anypb.New(c)
				if err != nil {
					t.Fatal(err)
				}
				m.Resources = append(m.Resources, packed)
			}
			wire, err := proto.Marshal(m)
			if err == nil {
				_, err = st.respond(arrival{typeURL: clusters.typeURL(), wire: wire})
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
			st := l.open('a', "")
			st.upstream, l.streams = openStream{}, nil // it takes nothing that is not said here
			ask(st, "", nil)
			return st
		}
		first := comes()
		say(first, "good", checkedCluster(clusterv3.Cluster_STATIC, "/a", "10.0.0.1"))
		ask(first, "good", nil)
		say(first, "bad", bad...)
		ask(first, "bad", &rpcstatus.Status{Message: "no"})
		first.end()
		second := comes()
		say(second, "bad", bad...)
		ask(second, "bad", &rpcstatus.Status{Message: "no"})
		time.Sleep(3 * time.Minute) // nothing is remembered any more
		l.wantChecks("it has refused others", "/a 1 /b 2 /other 3")
		say(second, "best", checkedCluster(clusterv3.Cluster_STATIC, "/c", "10.0.0.4"))
		ask(second, "best", nil)
		l.wantChecks("it accepts another", "/c 4")
		second.end()
		time.Sleep(3 * time.Minute)
		l.wantChecks("it has gone", "")
	})
}

// TestARefusalOnANewStreamLeavesWhatTheOldOneBrought, while hdsd takes the old stream for alive. The data
// plane has said that it has that.
func TestARefusalOnANewStreamLeavesWhatTheOldOneBrought(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		if !l.delta {
			return
		}
		first := l.open('a', "")
		first.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		first.give(assignmentOf("10.0.0.1"))
		l.wantChecks("at first", "/a 1")
		first.send(checkedCluster(clusterv3.Cluster_EDS, "/lost")) // it gets neither
		first.send(assignmentOf("10.0.0.9"))
		second := first.reopen()
		l.streams = []*tenant{second}
		second.refuse(second.send(checkedCluster(clusterv3.Cluster_EDS, "/b")))
		second.refuse(second.send(assignmentOf("10.0.0.2")))
		first.end()
		time.Sleep(3 * time.Minute) // nothing is remembered any more
		l.wantChecks("it has refused another", "/a 1")
		second.end()
		time.Sleep(3 * time.Minute)
		l.wantChecks("it has gone", "")
	})
}

// TestARemovalWithoutAnAnswer may not have come: a data plane that brings the cluster back, and refuses
// another one, has it.
func TestARemovalWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		first := l.open('a', "")
		first.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		first.give(assignmentOf("10.0.0.1"))
		l.wantChecks("at first", "/a 1")
		first.remove()
		first.end()
		second := first.reopen()
		second.refuse(second.send(checkedCluster(clusterv3.Cluster_EDS, "/b")))
		time.Sleep(3 * time.Minute) // nothing is remembered any more
		l.wantChecks("it has refused another", "/a 1")
		second.end()
		time.Sleep(3 * time.Minute)
		l.wantChecks("it has gone", "")
	})
}

// TestADataPlaneThatSaysWhatItHas has nothing else: by state of the world, what came before it and was
// not answered is not checked any more.
func TestADataPlaneThatSaysWhatItHas(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		first := l.open('a', "")
		first.give(checkedCluster(clusterv3.Cluster_EDS, "/a"))
		first.give(assignmentOf("10.0.0.1"))
		l.wantChecks("at first", "/a 1")
		first.send(checkedCluster(clusterv3.Cluster_EDS, "/b")) // it refuses this, and does not get to say so
		first.versions[clusters] = versionIn(t, l.delta, first.send(checkedCluster(clusterv3.Cluster_EDS, "/c")))
		first.end()
		second := first.reopen()
		l.wantChecks("it is back", "/c 1")
		second.end()
		time.Sleep(3 * time.Minute)
		l.wantChecks("it has gone", "")
	})
}

// versionIn returns the version of the only resource of a response, or that of the response.
func versionIn(t *testing.T, delta bool, wire []byte) string {
	t.Helper()
	r, err := message.ParseResponse(delta, wire)
	if err != nil || len(r.Resources) != 1 {
		t.Fatal(r, err)
	}
	u, err := message.ParseUnit(delta, r.Resources[0])
	if err != nil {
		t.Fatal(err)
	}
	return r.Version + u.Version
}

// TestARefusalThatWasLost comes again when the data plane refuses the next version, too: by state of the
// world, hdsd asks which of those before it has.
func TestARefusalThatWasLost(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		if l.delta {
			return // it says what it has
		}
		first := l.open('a', "")
		first.give(checkedCluster(clusterv3.Cluster_STATIC, "/a", "10.0.0.1"))
		l.wantChecks("at first", "/a 1")
		first.send(checkedCluster(clusterv3.Cluster_STATIC, "/b", "10.0.0.1")) // it refuses this, and does not get to say so
		first.end()
		second := first.reopen()
		l.streams = nil
		second.refuse(second.send(checkedCluster(clusterv3.Cluster_STATIC, "/c", "10.0.0.1")))
		push := second.nextPush()
		if push == nil {
			l.Fatal("hdsd does not ask for the version before")
		}
		second.refuse(push)
		l.wantChecks("it has refused both", "/a 1")
		second.end()
		time.Sleep(3 * time.Minute)
		l.wantChecks("it has gone", "")
	})
}
