package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/relay/message"
	"hdsd/source"
)

// plane is the delta stream of a client, and the cluster and assignment web.
type plane struct {
	*testing.T
	*stream
}

func newPlane(t *testing.T, s *Server) plane {
	return plane{t, &stream{server: s, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1), upstream: openStream{}}}
}

// give has the control plane send web of a kind. It reports whether the client gets it.
func (p plane) give(k kind, version, nonce string) bool {
	p.Helper()
	var m proto.Message = checkedCluster(clusterv3.Cluster_EDS, "/")
	if k == assignments {
		m = assignmentOf("10.0.0.1")
	}
	body, err := proto.Marshal(m)
	if err != nil {
		p.Fatal(err)
	}
	response := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: k.typeURL(), Nonce: nonce, Resources: []*discoveryv3.Resource{{}}}
	if err := proto.Unmarshal(resourceOf("web", body), response.GetResources()[0]); err != nil {
		p.Fatal(err)
	}
	response.Resources[0].Version = version
	wire, err := proto.Marshal(response)
	if err == nil {
		wire, err = p.respond(arrival{typeURL: k.typeURL(), wire: wire})
	}
	if err != nil {
		p.Fatal(err)
	}
	return p.accept(wire, k)
}

// accept reports whether a response is of a kind, and has web. The client accepts it.
func (p plane) accept(wire []byte, k kind) bool {
	p.Helper()
	response := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(wire, response); err != nil {
		p.Fatal(err)
	}
	p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()})
	return response.GetTypeUrl() == k.typeURL() && len(response.GetResources()) == 1 && response.GetResources()[0].GetName() == "web"
}

func (p plane) request(r *discoveryv3.DeltaDiscoveryRequest) {
	p.Helper()
	wire, err := proto.Marshal(r)
	if err == nil {
		_, err = p.sendRequest(wire)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// TestAnAssignmentFollowsItsClusterThatOnlyHdsdChanged in a response of the control plane, which has
// no reason to send it: an Envoy uses the cluster when it has it.
func TestAnAssignmentFollowsItsClusterThatOnlyHdsdChanged(t *testing.T) {
	t.Parallel()
	s := benchServer()
	p := newPlane(t, s)
	p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL()})
	p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{"web"}})
	if !p.give(clusters, "1", "1") || !p.give(assignments, "1", "2") || p.nextPush() != nil {
		t.Fatal("the first responses do not pass alone")
	}
	s.book.renew(s.stock.settle(map[string]bool{"web": true}, func(name string) string { return name })) // hdsd does not check it
	if !p.give(clusters, "2", "3") {
		t.Fatal("the cluster does not pass")
	}
	if !p.accept(p.nextPush(), assignments) {
		t.Error("the assignment does not follow")
	}
	if p.nextPush() != nil {
		t.Error("it follows twice")
	}
}

// TestAnAssignmentFollowsAfterARestart, too: the client has it, but an older form of its cluster.
func TestAnAssignmentFollowsAfterARestart(t *testing.T) {
	t.Parallel()
	for _, first := range []kind{clusters, assignments} {
		p := newPlane(t, benchServer())
		if first == clusters { // it comes before the client has asked for assignments
			p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), InitialResourceVersions: map[string]string{"web": message.Mark("1", 5)}})
			if !p.give(clusters, "1", "1") {
				t.Fatal("the cluster does not pass")
			}
			p.nextPush()
		}
		p.request(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{"web"}, InitialResourceVersions: map[string]string{"web": "1"},
		})
		follows := p.give(assignments, "1", "2")
		if first == assignments {
			if follows {
				t.Error("the assignment is sent although the client has it")
			}
			p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), InitialResourceVersions: map[string]string{"web": message.Mark("1", 5)}})
			if !p.give(clusters, "1", "1") {
				t.Fatal("the cluster does not pass")
			}
			follows = p.accept(p.nextPush(), assignments)
		}
		if !follows {
			t.Errorf("with %s first, the assignment does not follow", first.typeURL())
		}
	}
}

// TestAClusterOfWhichNoEndpointsCome is given back: nobody checks it. When they come after all, hdsd
// decides.
func TestAClusterOfWhichNoEndpointsCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{
			Health: true, Keep: time.Hour, MaxClusterEndpoints: 1000, MaxEndpoints: 1000, Checks: func(*clusterv3.Cluster, uint64) bool { return true },
			Settle: func(context.Context) error { return nil },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.catalogue.Run(ctx, func(*source.Set) {}) }()
		l := &unionLab{t, s.catalogue}
		i := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/"))
		checks := func(want bool, moment string) {
			t.Helper()
			if got := i.render(s).sent.change == 0; got != want {
				t.Errorf("%s, the clients check it: %t", moment, got)
			}
		}
		checks(false, "at first")
		time.Sleep(promiseTimeout - time.Second)
		checks(false, "before the time is over")
		time.Sleep(3 * time.Second)
		checks(true, "after it")
		s.stock.release(i)
		time.Sleep(time.Second)
		i = l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/"))
		checks(false, "when it comes anew")
		cancel()
		<-done
		s.Close()
	})
}
