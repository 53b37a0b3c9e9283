package eds

import (
	"bytes"
	"runtime"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// repeated repeats an empty field.
func repeated(n int, path ...protowire.Number) []byte {
	var one []byte
	one = protowire.AppendBytes(protowire.AppendTag(one, path[len(path)-1], protowire.BytesType), nil)
	b := bytes.Repeat(one, n)
	for i := len(path) - 2; i >= 0; i-- {
		b = protowire.AppendBytes(protowire.AppendTag(nil, path[i], protowire.BytesType), b)
	}
	return b
}

// TestManySmallPartsAreNotDecoded: a message with two bytes for each part grows to dozens
// of times its size when it is decoded.
func TestManySmallPartsAreNotDecoded(t *testing.T) {
	const stateNode, deltaNode, locators, parameters, extensions, metadata, values, detail, details = 2, 1, 7, 2, 9, 3, 1, 6, 3
	state := func() proto.Message { return new(discoveryv3.DiscoveryRequest) }
	delta := func() proto.Message { return new(discoveryv3.DeltaDiscoveryRequest) }
	for name, c := range map[string]struct {
		message func() proto.Message
		path    []protowire.Number
	}{
		"names":               {state, []protowire.Number{3}},
		"locators":            {state, []protowire.Number{locators}},
		"subscribe":           {delta, []protowire.Number{3}},
		"unsubscribe":         {delta, []protowire.Number{4}},
		"versions":            {delta, []protowire.Number{5}},
		"subscribe locator":   {delta, []protowire.Number{8}},
		"unsubscribe locator": {delta, []protowire.Number{9}},
		"parameters":          {state, []protowire.Number{locators, parameters}},
		"extensions":          {state, []protowire.Number{stateNode, extensions}},
		"metadata":            {delta, []protowire.Number{deltaNode, metadata, values}},
		"error details":       {state, []protowire.Number{detail, details}},
	} {
		t.Run(name, func(t *testing.T) {
			in := mem.BufferSlice{mem.SliceBuffer(repeated(1<<20, c.path...))}
			m := counted{limiter: NewServer(Options{}).limiter, message: c.message()}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := wire.Codec().Unmarshal(in, &m); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			equal(t, "code", status.Code(m.refusal), codes.ResourceExhausted)
			equal(t, "decoded", proto.Size(m.message), 0)
			if n := after.Mallocs - before.Mallocs; n > 10_000 {
				t.Errorf("%d allocations", n)
			}
		})
	}
}

func TestManySmallPartsEndStreamsAndFetches(t *testing.T) {
	inBubble(t, Options{MaxNames: 3}, func(t *testing.T, b *bench) {
		empty := make([]string, 200_000)
		d, s := b.delta(), b.state()
		d.send(subscribe(resourcev3.EndpointType, empty...))
		s.send(want(resourcev3.EndpointType, empty...))
		equal(t, "delta", d.end().Code(), codes.ResourceExhausted)
		equal(t, "state of the world", s.end().Code(), codes.ResourceExhausted)
		_, err := b.fetchEndpoints(want("", empty...))
		equal(t, "fetch", status.Code(err), codes.ResourceExhausted)
		code, _ := pollREST(t, b.server, EndpointsPath, want("", empty...))
		equal(t, "REST", code, 413)
	})
}

// FuzzCount decodes no more than is allowed, whatever the input.
func FuzzCount(f *testing.F) {
	for _, path := range [][]protowire.Number{{3}, {4}, {5}, {7}, {9}, {1, 9}, {7, 2}, {1, 3, 1, 2, 5, 1}} {
		f.Add(repeated(5, path...))
		f.Add(repeated(2, path...))
	}
	s := NewServer(Options{MaxNames: 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		state, delta := new(discoveryv3.DiscoveryRequest), new(discoveryv3.DeltaDiscoveryRequest)
		if s.limiter.counter(state).count(b) == nil && proto.Unmarshal(b, state) == nil {
			if n := max(len(state.GetResourceNames()), len(state.GetResourceLocators())); n > 4 {
				t.Errorf("%d names are decoded", n)
			}
		}
		if s.limiter.counter(delta).count(b) == nil && proto.Unmarshal(b, delta) == nil {
			if n := max(len(delta.GetResourceNamesSubscribe()), len(delta.GetResourceNamesUnsubscribe())); n > 4 {
				t.Errorf("%d names are decoded", n)
			}
			if n := len(delta.GetInitialResourceVersions()); n > 6 {
				t.Errorf("%d versions are decoded", n)
			}
		}
	})
}
