package eds

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/health"
	"hdsd/publish"
)

var stateNames = [...]string{"not sent", "outdated", "outstanding", "accepted", "refused"}

// statusText describes state and content of the resources of all clients, as
// "a: accepted HE".
func (b *bench) statusText() string {
	var all []string
	for c := range b.server.Subscribers() {
		for _, r := range c.Resources() {
			all = append(all, resourceText(&r))
		}
	}
	return strings.Join(all, ", ")
}

func resourceText(r *Resource) string {
	text := r.Name + ": " + stateNames[r.State]
	if body := r.Body(); body != nil {
		text += " " + summary(r.TypeURL, body.GetValue())
	}
	if !r.Exists {
		text += " absent"
	}
	if r.Refusal != nil {
		text += fmt.Sprintf(" (%s", r.Refusal.Text)
		if body := r.Refusal.Body(r.TypeURL); body != nil {
			text += " " + summary(r.TypeURL, body.GetValue())
		}
		text += ")"
	}
	return text
}

func TestStatusFollowsAResource(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		equal(t, "before the first message", b.statusText(), "")
		p.send(subscribe(resourcev3.EndpointType, "a", "none"))
		first := p.next()
		equal(t, "sent", b.statusText(), "a: outstanding HE, none: outstanding absent")
		b.server.setHealth(0, health.Unhealthy)
		equal(t, "changed on the way", b.statusText(), "a: outstanding HE, none: outstanding absent")
		p.send(ack(first))
		second := p.next()
		equal(t, "sent again", b.statusText(), "a: outstanding UN, none: accepted absent")
		p.send(nack(second, "bad weight"))
		p.nothing()
		equal(t, "refused", b.statusText(), "a: refused UN (bad weight UN), none: accepted absent")
		b.server.setHealth(0, health.Timeout)
		third := p.next()
		equal(t, "the next is on its way", b.statusText(), "a: outstanding TI (bad weight UN), none: accepted absent")
		p.send(ack(third))
		p.nothing()
		equal(t, "accepted", b.statusText(), "a: accepted TI, none: accepted absent")
		b.server.Update(publish.Update{RemovedAssignments: []string{"a"}})
		removal := p.next()
		equal(t, "removed", b.statusText(), "a: outstanding absent, none: accepted absent")
		p.send(nack(removal, "I need it"))
		p.nothing()
		equal(t, "refused to go", b.statusText(), "a: refused absent (I need it), none: accepted absent")
		p.cancel()
		p.ends()
		equal(t, "gone", b.statusText(), "")
	})
}

// ends waits for the stream's end.
func (p *xdsPeer[Req, Res]) ends() {
	p.b.t.Helper()
	<-p.ended
	for len(p.b.server.Clients(nil)) > 0 { // the handler follows
		time.Sleep(time.Millisecond) // in the bubble
	}
}

func TestStatusOfOutdatedResources(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "b"))
		first := p.next()
		p.send(ack(first))
		p.nothing()
		b.server.setHealth(0, health.Unhealthy) // its response stays unanswered
		p.next()
		b.server.setHealth(1, health.Unhealthy)
		equal(t, "waiting its turn", b.statusText(), "a: outstanding UN, b: outdated")
		p.cancel()
	})
}

func TestStatusAfterReconnect(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		had := versions(p.next())
		p.cancel()
		p.ends()

		again := b.delta()
		m := subscribe(resourcev3.EndpointType, "a")
		m.InitialResourceVersions = had
		again.send(m)
		again.nothing()
		equal(t, "nothing was sent", b.statusText(), "a: accepted HE")
		for c := range b.server.Subscribers() {
			r := c.Resources()[0]
			equal(t, "version", r.Version, had["a"])
			equal(t, "sent", r.Sent.IsZero(), true)
		}
		again.cancel()
	})
}

func TestStatusOfState(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		b.server.Update(publish.Update{Clusters: clusters("x", "1")})
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a", "none"))
		p.send(ackState(p.next(), "a", "none"))
		p.nothing()
		p.send(want(resourcev3.ClusterType))
		r := p.next()
		equal(t, "both types", b.statusText(), "x: outstanding 1, a: accepted HE, none: accepted absent")
		p.send(nackState(r, "no"))
		p.nothing()
		equal(t, "refused", b.statusText(), "x: refused 1 (no 1), a: accepted HE, none: accepted absent")
		p.cancel()
	})
}

func TestStatusDescribesTheStream(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		began := time.Now()
		b.publish("a")
		p := b.delta()
		m := subscribe(resourcev3.EndpointType, "a")
		m.Node = &corev3.Node{
			Id: "dp-1", Cluster: "edge", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"vpc": structpb.NewStringValue("blue")}},
			Extensions: []*corev3.Extension{{Name: "envoy.health_checkers.redis"}},
		}
		p.send(m)
		p.next()
		p.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("dp-2"), TypeUrl: resourcev3.ListenerType})
		p.nothing()
		all := slices.Collect(b.server.Subscribers())
		equal(t, "clients", len(all), 1)
		c := all[0]
		equal(t, "the first node counts", c.Node.GetId(), "dp-1")
		equal(t, "metadata", c.Node.GetMetadata().GetFields()["vpc"].GetStringValue(), "blue")
		equal(t, "extensions", len(c.Node.GetExtensions()), 0)
		equal(t, "service", c.Service, "ADS")
		equal(t, "delta", c.Delta, true)
		equal(t, "connected", c.Connected.Equal(began), true)
		equal(t, "sent", c.Resources()[0].Sent.Equal(began), true)
		p.cancel()
	})
}

func TestOfALargeNodeTheNamesAreKept(t *testing.T) {
	large := &corev3.Node{Id: "dp-1", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		strings.Repeat("k", maxNode): structpb.NewBoolValue(true),
	}}}
	kept := keptNode(large)
	equal(t, "id", kept.GetId(), "dp-1")
	equal(t, "metadata", kept.GetMetadata() == nil, true)
}

func TestRefusedFramesAreBounded(t *testing.T) {
	inBubble(t, Options{MaxResponseBytes: 300}, func(t *testing.T, b *bench) {
		b.publish("a", "b", "c", "d")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "b", "c", "d"))
		p.send(nack(p.next(), "no")) // of two or three: more does not fit
		p.send(nack(p.next(), "no"))
		p.nothing()
		p.b.server.streams.mu.Lock()
		var u *subscription
		for st := range p.b.server.streams.open {
			u = st.subs[1]
		}
		p.b.server.streams.mu.Unlock()
		u.mu.Lock()
		kept, sum := u.delivery.refused, 0
		for _, w := range u.interest.list() {
			sum += w.failure.frame.size()
		}
		u.mu.Unlock()
		equal(t, "counted as it is", kept, sum)
		if kept == 0 || kept > 300 {
			t.Errorf("%d bytes are kept", kept)
		}
		equal(t, "still seen while unchanged", b.statusText(),
			"a: refused HE (no HE), b: refused HE (no HE), c: refused HE (no HE), d: refused HE (no HE)")
		p.send(unsubscribe(resourcev3.EndpointType, "a", "b", "c", "d"))
		p.nothing()
		u.mu.Lock()
		defer u.mu.Unlock()
		equal(t, "given up with the names", u.delivery.refused, 0)
		p.cancel()
	})
}
