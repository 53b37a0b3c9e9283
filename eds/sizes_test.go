//go:build !race || soak

package eds

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/publish"
)

// TestAClientMayNameEveryResource: however many resources there are, a data plane that
// names each of them gets them all, and costs only what it names.
func TestAClientMayNameEveryResource(t *testing.T) {
	const perName = 2 << 10 // of both clients and the server together
	sizes := []int{110_000, 60_000}[:rounds(1, 2)]
	for _, n := range sizes {
		inBubble(t, Options{}, func(t *testing.T, b *bench) {
			names := manyNames(n)
			before := heap()
			b.server.Update(publish.Update{Assignments: manyAssignments(names, 1)})
			d := b.delta()
			d.send(subscribe(resourcev3.EndpointType, names...))
			for got := 0; got < n; {
				r := d.next()
				got += len(r.GetResources())
				d.send(ack(r))
			}
			d.nothing()
			s := b.state()
			s.send(want(resourcev3.EndpointType, names...))
			for got := 0; got < n; {
				r := s.next()
				got += len(r.GetResources())
				s.send(ackState(r, names...))
			}
			s.nothing()
			if used := heap() - before; used > n*perName {
				t.Errorf("%d bytes for each of %d names", used/n, n)
			}
			d.cancel()
			s.cancel()
		})
	}
}

// TestAllowedNumberOfPartsIsDecoded: a large request within the limits is not refused.
func TestAllowedNumberOfPartsIsDecoded(t *testing.T) {
	s := NewServer(Options{})
	names := many(1)
	for len(names) < s.limiter.limits().names {
		names = append(names, "a-name-of-common-length")
	}
	locators := make([]*discoveryv3.ResourceLocator, len(names))
	held := make(map[string]string)
	for i := range locators {
		locators[i] = &discoveryv3.ResourceLocator{Name: names[i], DynamicParameters: map[string]string{ZoneParameter: "a"}}
		held[formatVersion(uint64(i))] = "x"
	}
	n := &corev3.Node{Id: "a"}
	for range 500 {
		n.Extensions = append(n.Extensions, &corev3.Extension{Name: "e", Category: "c", TypeUrls: names[:4]})
	}
	for _, m := range []proto.Message{
		&discoveryv3.DiscoveryRequest{Node: n, ResourceNames: append(names, wildcard)},
		&discoveryv3.DiscoveryRequest{Node: n, ResourceLocators: locators},
		&discoveryv3.DeltaDiscoveryRequest{Node: n, ResourceNamesSubscribe: names, ResourceNamesUnsubscribe: names, InitialResourceVersions: held},
	} {
		in, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c := counted{limiter: s.limiter, message: m.ProtoReflect().New().Interface()}
		if err := wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(in)}, &c); err != nil || c.refusal != nil {
			t.Fatal(err, c.refusal)
		}
		equal(t, "decoded", proto.Equal(c.message, m), true)
	}
}
