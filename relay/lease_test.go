package relay

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
	"hdsd/publish"
)

// lessee is a client's stream over which assignments with a lease of ten seconds pass.
type lessee struct {
	conversation
	delta  bool
	nonces int
}

func newLessee(t *testing.T, s *Server, delta bool) *lessee {
	t.Helper()
	st := &stream{server: s, method: method{delta: delta}, nodeID: "n", wake: make(chan struct{}, 1)}
	return &lessee{conversation: conversation{t, st}, delta: delta}
}

// give has the control plane send an assignment, and the client accept it.
func (l *lessee) give(name string, lease time.Duration) {
	l.Helper()
	a := assignmentOf("10.0.0.1")
	a.ClusterName = name
	a.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(120)}
	if lease > 0 {
		a.Policy.EndpointStaleAfter = durationpb.New(lease)
	}
	packed, err := anypb.New(a)
	if err != nil {
		l.Fatal(err)
	}
	l.nonces++
	nonce := fmt.Sprint(l.nonces)
	var m proto.Message = &discoveryv3.DiscoveryResponse{TypeUrl: assignments.typeURL(), VersionInfo: "1", Nonce: nonce, Resources: []*anypb.Any{packed}}
	if l.delta {
		m = &discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: assignments.typeURL(), Nonce: nonce, Resources: []*discoveryv3.Resource{{Name: name, Version: "1", Resource: packed}},
		}
	}
	wire, err := proto.Marshal(m)
	if err == nil {
		wire, err = l.respond(arrival{typeURL: assignments.typeURL(), wire: wire})
	}
	if err != nil {
		l.Fatal(err)
	}
	if got := l.read(wire).GetPolicy().GetEndpointStaleAfter().AsDuration(); got != lease {
		l.Errorf("the control plane's own response has a lease of %v, want %v", got, lease)
	}
}

// read takes the only assignment of a response, and accepts it.
func (l *lessee) read(wire []byte) *endpointv3.ClusterLoadAssignment {
	l.Helper()
	a := &endpointv3.ClusterLoadAssignment{}
	var err error
	var ack proto.Message
	if l.delta {
		r := &discoveryv3.DeltaDiscoveryResponse{}
		if err = proto.Unmarshal(wire, r); err == nil {
			if len(r.GetResources()) != 1 {
				l.Fatalf("the response is %v, want one with an assignment", r)
			}
			err = r.GetResources()[0].GetResource().UnmarshalTo(a)
		}
		ack = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
	} else {
		r := &discoveryv3.DiscoveryResponse{}
		if err = proto.Unmarshal(wire, r); err == nil {
			err = r.GetResources()[0].UnmarshalTo(a)
		}
		ack = &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo(), ResourceNames: []string{a.GetClusterName()}}
	}
	if err == nil {
		if wire, err = proto.Marshal(ack); err == nil {
			_, err = l.sendRequest(wire)
		}
	}
	if err != nil {
		l.Fatal(err)
	}
	return a
}

// flip changes the health of the endpoint, and holds the lease in hdsd's own response against
// what is left of it; 0: no response.
func (l *lessee) flip(status health.Status, left time.Duration) {
	l.Helper()
	l.server.book.SetHealth([]publish.Health{{ID: 0, Status: status}})
	l.wantPush(status, left)
}

func (l *lessee) wantPush(want health.Status, left time.Duration) {
	l.Helper()
	wire := l.nextPush()
	if wire == nil || left == 0 {
		if wire != nil || left > 0 {
			l.Errorf("at %v, hdsd sends %x, want a lease of %v", time.Now(), wire, left)
		}
		return
	}
	a := l.read(wire)
	if got := a.GetPolicy().GetEndpointStaleAfter().AsDuration(); got != left || a.GetPolicy().GetOverprovisioningFactor().GetValue() != 120 {
		l.Errorf("hdsd's own response has the policy %v, want a lease of %v", a.GetPolicy(), left)
	}
	if got := statusOf(a); got != want {
		l.Errorf("the endpoint is %v, want %v", got, want)
	}
}

func statusOf(a *endpointv3.ClusterLoadAssignment) health.Status {
	return health.Status(a.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus())
}

// withLeases runs a test of leases for both variants of the protocol.
func withLeases(t *testing.T, test func(t *testing.T, s *Server, delta bool)) {
	for name, delta := range map[string]bool{"delta": true, "state of the world": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, checkedServer(t), delta)
			})
		})
	}
}

// checkedServer is a server whose core has checked the endpoint of an assignment "web".
func checkedServer(t *testing.T) *Server {
	t.Helper()
	s := benchServer()
	web := publish.Assignment{Name: "web", IDs: [][][]health.EndpointID{{{0}}}}
	var err error
	if web.Wire, err = proto.Marshal(assignmentOf("10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	s.book.Update(publish.Update{Assignments: []publish.Assignment{web}})
	s.book.SetHealth([]publish.Health{{ID: 0, Status: health.Healthy}})
	return s
}

// TestLeases: only the control plane renews the lease of an assignment. hdsd's own responses
// have what is left of it, and end with it.
func TestLeases(t *testing.T) {
	t.Parallel()
	withLeases(t, func(_ *testing.T, s *Server, delta bool) {
		l := newLessee(t, s, delta)
		l.give("web", 10*time.Second)
		time.Sleep(4*time.Second + time.Microsecond)
		l.flip(health.Unhealthy, 6*time.Second-time.Millisecond)
		time.Sleep(3 * time.Second)
		l.flip(health.Healthy, 3*time.Second-time.Millisecond)
		l.give("web", 10*time.Second)
		time.Sleep(9 * time.Second)
		l.flip(health.Unhealthy, time.Second)
		time.Sleep(time.Second - 500*time.Microsecond)
		l.flip(health.Healthy, 0) // an Envoy takes less than a millisecond for no lease
		time.Sleep(time.Minute)
		l.flip(health.Unhealthy, 0)
		l.give("web", 10*time.Second)
		l.flip(health.Healthy, 10*time.Second)
		l.give("web", 0)
		time.Sleep(time.Minute)
		l.server.book.SetHealth([]publish.Health{{ID: 0, Status: health.Unhealthy}})
		if a := l.read(l.nextPush()); a.GetPolicy().GetEndpointStaleAfter() != nil || statusOf(a) != health.Unhealthy {
			t.Errorf("without a lease it is sent %v", a)
		}
		l.close()
	})
}

// subscribe has the client begin its stream.
func (l *lessee) subscribe(versions map[string]string) {
	l.Helper()
	var m proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNames: []string{"web"}}
	if l.delta {
		m = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{"web"}, InitialResourceVersions: versions}
	}
	wire, err := proto.Marshal(m)
	if err == nil {
		_, err = l.sendRequest(wire)
	}
	if err != nil {
		l.Fatal(err)
	}
}

// TestLeasesWhileTheControlPlaneIsAway: what a node had is served from memory until its lease
// is over.
func TestLeasesWhileTheControlPlaneIsAway(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, s *Server, delta bool) {
		l := newLessee(t, s, delta)
		l.subscribe(nil)
		l.give("web", 10*time.Second)
		for _, left := range []time.Duration{6 * time.Second, 2 * time.Second, 0} {
			l.close()
			time.Sleep(4 * time.Second)
			l = newLessee(t, s, delta)
			l.subscribe(nil)
			l.wantPush(health.Healthy, left)
		}
		l.close()
	})
}

// TestLeasesAfterARestart: what the control plane sends since hdsd knows nothing renews the
// lease of a client that has it.
func TestLeasesAfterARestart(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, s *Server, delta bool) {
		l := newLessee(t, s, delta)
		l.subscribe(nil)
		l.give("web", 10*time.Second)
		version := l.ledgers[assignments].holdings.get("web").item.rendered.Load().version
		second := newLessee(t, checkedServer(t), delta)
		second.subscribe(map[string]string{"web": version})
		second.give("web", 10*time.Second)
	})
}
