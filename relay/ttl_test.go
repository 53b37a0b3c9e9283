package relay

import (
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/health"
	"hdsd/publish"
)

// passResource passes a response with one Resource to the client, which accepts it, and returns the
// Resource as the client gets it.
func (l *lessee) passResource(r *discoveryv3.Resource, nonce string) *discoveryv3.Resource {
	l.Helper()
	var m proto.Message = &discoveryv3.DeltaDiscoveryResponse{TypeUrl: assignments.typeURL(), Nonce: nonce, Resources: []*discoveryv3.Resource{r}}
	if !l.delta {
		packed, err := anypb.New(r)
		if err != nil {
			l.Fatal(err)
		}
		m = &discoveryv3.DiscoveryResponse{TypeUrl: assignments.typeURL(), VersionInfo: r.GetVersion(), Nonce: nonce, Resources: []*anypb.Any{packed}}
	}
	wire, err := proto.Marshal(m)
	if err == nil {
		wire, err = l.respond(arrival{typeURL: assignments.typeURL(), wire: wire})
	}
	if err != nil {
		l.Fatal(err)
	}
	return l.accept(wire)
}

// accept returns the only Resource of a response, and acknowledges the response.
func (l *lessee) accept(wire []byte) *discoveryv3.Resource {
	l.Helper()
	var ack proto.Message
	var resources []*discoveryv3.Resource
	if l.delta {
		r := &discoveryv3.DeltaDiscoveryResponse{}
		if err := proto.Unmarshal(wire, r); err != nil {
			l.Fatal(err)
		}
		resources, ack = r.GetResources(), &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
	} else {
		r := &discoveryv3.DiscoveryResponse{}
		if err := proto.Unmarshal(wire, r); err != nil {
			l.Fatal(err)
		}
		for _, packed := range r.GetResources() {
			resource := &discoveryv3.Resource{}
			if err := packed.UnmarshalTo(resource); err != nil {
				l.Fatal(err)
			}
			resources = append(resources, resource)
		}
		ack = &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo(), ResourceNames: []string{"web"}}
	}
	if len(resources) != 1 {
		l.Fatalf("a response has %v", resources)
	}
	wire, err := proto.Marshal(ack)
	if err == nil {
		_, err = l.sendRequest(wire)
	}
	if err != nil {
		l.Fatal(err)
	}
	return resources[0]
}

// TestTimesToLive: only the control plane renews the time to live of a resource: it sends the
// resource again, or a heartbeat. hdsd's own responses have the rest of it, and end with it.
func TestTimesToLive(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, s *Server, delta bool) {
		l := newLessee(t, s, delta)
		a := assignmentOf("10.0.0.1")
		a.ClusterName = "web"
		packed, err := anypb.New(a)
		if err != nil {
			t.Fatal(err)
		}
		whole := &discoveryv3.Resource{Name: "web", Version: "1", Resource: packed, Ttl: durationpb.New(10 * time.Second)}
		send := func(nonce string) {
			t.Helper()
			if got := l.passResource(whole, nonce).GetTtl().AsDuration(); got != 10*time.Second {
				t.Errorf("the control plane's own response has a time to live of %v", got)
			}
		}
		flip := func(status health.Status, left time.Duration) {
			t.Helper()
			l.server.book.SetHealth([]publish.Health{{ID: 0, Status: status}})
			wire := l.nextPush()
			if wire == nil || left == 0 {
				if wire != nil || left > 0 {
					t.Errorf("hdsd sends %x, want a time to live of %v", wire, left)
				}
				return
			}
			if got := l.accept(wire).GetTtl().AsDuration(); got != left {
				t.Errorf("hdsd's own response has a time to live of %v, want %v", got, left)
			}
		}
		send("1")
		time.Sleep(4*time.Second + time.Microsecond)
		flip(health.Unhealthy, 6*time.Second-time.Millisecond)
		send("2")
		time.Sleep(9 * time.Second)
		flip(health.Healthy, time.Second)
		l.passResource(&discoveryv3.Resource{Name: "web", Version: "1", Ttl: durationpb.New(20 * time.Second)}, "3")
		time.Sleep(5 * time.Second)
		flip(health.Unhealthy, 15*time.Second)
		time.Sleep(15*time.Second - 500*time.Microsecond)
		flip(health.Healthy, 0)
		send("4")
		flip(health.Unhealthy, 10*time.Second)
		whole.Ttl = nil
		l.passResource(whole, "5")
		time.Sleep(time.Minute)
		l.server.book.SetHealth([]publish.Health{{ID: 0, Status: health.Healthy}})
		if r := l.accept(l.nextPush()); r.Ttl != nil {
			t.Errorf("without a time to live, hdsd's own response has %v", r.GetTtl())
		}
		l.close()
	})
}

// TestATimeToLiveThatEnds: a resource or a heartbeat without a time to live takes away that of
// before. hdsd's own responses have none then, and never end.
func TestATimeToLiveThatEnds(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, s *Server, delta bool) {
		l := newLessee(t, s, delta)
		a := assignmentOf("10.0.0.1")
		a.ClusterName = "web"
		packed, err := anypb.New(a)
		if err != nil {
			t.Fatal(err)
		}
		whole := &discoveryv3.Resource{Name: "web", Version: "1", Resource: packed, Ttl: durationpb.New(10 * time.Second)}
		heartbeat := &discoveryv3.Resource{Name: "web", Version: "1"}
		flip := func(status health.Status) {
			t.Helper()
			time.Sleep(time.Minute)
			l.server.book.SetHealth([]publish.Health{{ID: 0, Status: status}})
			if wire := l.nextPush(); wire == nil {
				t.Error("hdsd sends nothing")
			} else if r := l.accept(wire); r.Ttl != nil {
				t.Errorf("hdsd's own response has a time to live of %v", r.GetTtl())
			}
		}
		l.passResource(whole, "1")
		l.passResource(heartbeat, "2")
		flip(health.Unhealthy)
		flip(health.Healthy)
		whole.Ttl = nil
		l.passResource(whole, "3")
		heartbeat.Ttl = durationpb.New(10 * time.Second)
		l.passResource(heartbeat, "4")
		l.server.book.SetHealth([]publish.Health{{ID: 0, Status: health.Degraded}})
		if got := l.accept(l.nextPush()).GetTtl().AsDuration(); got != 10*time.Second {
			t.Errorf("after a heartbeat, hdsd's own response has a time to live of %v", got)
		}
		l.passResource(whole, "5")
		flip(health.Unhealthy)
		l.close()
	})
}
