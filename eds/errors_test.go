package eds

import (
	"fmt"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"

	"hdsd/publish"
)

// faults describes resource_errors.
func faults(all []*discoveryv3.ResourceError) string {
	var said []string
	for _, e := range all {
		if e.GetErrorDetail().GetMessage() == "" {
			said = append(said, "without a message:")
		}
		said = append(said, fmt.Sprint(e.GetResourceName().GetName(), " ", codes.Code(e.GetErrorDetail().GetCode())))
	}
	return fmt.Sprint(said)
}

func TestResourceErrorsNameWhatIsMissing(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		d, s := b.delta(), b.state()
		m := subscribe(resourcev3.EndpointType, "a", "none")
		m.Node.UserAgentName = "gRPC Go"
		d.send(m)
		r := d.next()
		equal(t, "delta", describe(r)+faults(r.GetResourceErrors()), "[-none a=HE][none NotFound]")
		d.send(ack(r))
		b.server.Update(publish.Update{RemovedAssignments: []string{"a"}})
		r = d.next()
		equal(t, "removed", describe(r)+faults(r.GetResourceErrors()), "[-a][a NotFound]")
		d.send(ack(r))
		d.send(subscribe(resourcev3.ClusterType, "*"))
		d.send(ack(d.next()))
		r = d.next()
		equal(t, "the cluster waits for it", describe(r)+faults(r.GetResourceErrors()), "[-a][a NotFound]")
		d.send(ack(r))
		b.server.Update(publish.Update{RemovedClusters: []string{"a"}})
		r = d.next()
		equal(t, "who asks for everything has named nothing", describe(r)+faults(r.GetResourceErrors()), "[-a][]")

		n := want(resourcev3.EndpointType, "none")
		n.Node.UserAgentName = "gRPC C-core"
		s.send(n)
		sr := s.next()
		equal(t, "state of the world", describeState(sr)+faults(sr.GetResourceErrors()), "[none=][none NotFound]")
		s.send(ackState(sr, "none"))
		s.nothing()
		b.publish("none")
		sr = s.next()
		equal(t, "there", describeState(sr)+faults(sr.GetResourceErrors()), "[none=HE][]")
		s.send(ackState(sr, "none"))
		b.server.Update(publish.Update{RemovedAssignments: []string{"none"}})
		sr = s.next()
		equal(t, "gone", describeState(sr)+faults(sr.GetResourceErrors()), "[none=][none NotFound]")
		s.send(ackState(sr, "none"))
		s.send(want(resourcev3.ClusterType, "b"))
		sr = s.next()
		equal(t, "clusters", describeState(sr)+faults(sr.GetResourceErrors()), "[][b NotFound]")
		d.cancel()
		s.cancel()
	})
}

func TestResourceErrorsOnlyForClientsThatUnderstandThem(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		d, s := b.delta(), b.state()
		m := subscribe(resourcev3.EndpointType, "none")
		m.Node.UserAgentName = "envoy"
		d.send(m)
		equal(t, "errors", len(d.next().GetResourceErrors()), 0)
		n := want(resourcev3.EndpointType, "none")
		n.Node.UserAgentName = "envoy"
		s.send(n)
		sr := s.next()
		equal(t, "state of the world", describeState(sr)+faults(sr.GetResourceErrors()), "[none=][]")
		d.cancel()
		s.cancel()
	})
}
