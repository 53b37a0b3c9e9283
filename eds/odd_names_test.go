package eds

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestWhatCannotBeShownIsRefused: a data plane whose names would act on a terminal gets
// nothing, however it asks.
func TestWhatCannotBeShownIsRefused(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		for _, node := range []*corev3.Node{
			{Id: "\x1b[2J"}, {Id: "a\u202eb"}, {Id: "a", Cluster: "\u009b31m"}, {Id: "a", UserAgentName: "a\nb"},
			{Id: "a", Locality: &corev3.Locality{Region: "\a"}}, {Id: "a", Locality: &corev3.Locality{Zone: "\u2066"}},
		} {
			asked := want(resourcev3.EndpointType, "a")
			asked.Node = node
			s := b.state()
			s.send(asked)
			if got := s.end(); got.Code() != codes.InvalidArgument || !strings.Contains(got.Message(), "cannot be shown") {
				t.Errorf("%v: the stream ends with %v", node, got)
			}
			first := subscribe(resourcev3.EndpointType, "a")
			first.Node = node
			d := b.delta()
			d.send(first)
			equal(t, "delta", d.end().Code(), codes.InvalidArgument)
			if _, err := b.fetchEndpoints(asked); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v: the fetch gives %v", node, err)
			}
		}
	})
}
