//go:build !race || soak

package eds

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// cut is an encoded message in buffers of a size.
func cut(encoded []byte, size int) (data mem.BufferSlice) {
	for part := range slices.Chunk(encoded, size) {
		data = append(data, mem.SliceBuffer(part))
	}
	return data
}

// TestPiecesGiveTheWholeMessage: however grpc's buffers lie, what is decoded piece by piece
// is what is decoded at once.
func TestPiecesGiveTheWholeMessage(t *testing.T) {
	m := &discoveryv3.DeltaDiscoveryRequest{
		Node:    &corev3.Node{Id: "a", UserAgentName: strings.Repeat("u", 200_000)},
		TypeUrl: "type", ResponseNonce: "7", InitialResourceVersions: map[string]string{"x": "1", "y": "2"},
	}
	for i := range 5000 {
		m.ResourceNamesSubscribe = append(m.ResourceNamesSubscribe, fmt.Sprint(strings.Repeat("n", i), i))
		m.ResourceNamesUnsubscribe = append(m.ResourceNamesUnsubscribe, fmt.Sprint("u", i))
	}
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{997, stepBytes, pieceBytes + 1, len(encoded)} {
		c := counted{limiter: NewServer(Options{}).limiter, message: new(discoveryv3.DeltaDiscoveryRequest)}
		if err := wire.Codec().Unmarshal(cut(encoded, size), &c); err != nil || c.refusal != nil || !proto.Equal(c.message, m) {
			t.Errorf("in buffers of %d bytes: %v, %v, equal %v", size, err, c.refusal, proto.Equal(c.message, m))
		}
		c.message = new(discoveryv3.DeltaDiscoveryRequest)
		if err := wire.Codec().Unmarshal(cut(encoded[:len(encoded)-1], size), &c); err == nil {
			t.Errorf("in buffers of %d bytes: a message without its end is decoded", size)
		}
	}
	invalid := append(bytes.Clone(encoded), bytes.Repeat([]byte{0xff}, 2*pieceBytes)...)
	c := counted{limiter: NewServer(Options{}).limiter, message: new(discoveryv3.DeltaDiscoveryRequest)}
	if err := wire.Codec().Unmarshal(cut(invalid, 1000), &c); err == nil {
		t.Error("an invalid message is decoded")
	}
}

// TestLargePartsAreRefusedWithoutACopy: names and nodes that are too large are refused by
// what is on the wire, and hdsd makes nothing of their size.
func TestLargePartsAreRefusedWithoutACopy(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for name, c := range map[string]struct {
		m    *discoveryv3.DiscoveryRequest
		says string
	}{
		"a name of 60 MiB":      {&discoveryv3.DiscoveryRequest{ResourceNames: []string{strings.Repeat("x", 60<<20)}}, "a field of a request may have up to"},
		"names of 20,000 bytes": {&discoveryv3.DiscoveryRequest{ResourceNames: slices.Repeat([]string{long}, 3000)}, "a name may have up to 16384 bytes"},
		"names of 60 MiB":       {&discoveryv3.DiscoveryRequest{ResourceNames: slices.Repeat([]string{long[:600]}, 100_000)}, "bytes together"},
		"a node of 33 MiB":      {&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: strings.Repeat("x", 33<<20)}}, "make the node smaller"},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := proto.Marshal(c.m)
			if err != nil {
				t.Fatal(err)
			}
			data, into := cut(encoded, 16<<10), counted{limiter: NewServer(Options{}).limiter, message: new(discoveryv3.DiscoveryRequest)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := wire.Codec().Unmarshal(data, &into); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if status.Code(into.refusal) != codes.ResourceExhausted || !strings.Contains(into.refusal.Error(), c.says) {
				t.Errorf("refused as %v", into.refusal)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
				t.Errorf("it takes %d bytes to refuse it", taken)
			}
		})
	}
}
