//go:build !race || soak

package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/publish"
)

// TestTooManyNamesAreNotDecoded: the limit follows the largest number of resources so far,
// so that it does not end a client that still names clusters that are gone.
func TestTooManyNamesAreNotDecoded(t *testing.T) {
	s := NewServer(Options{MaxNames: 10})
	refused := func(names int) codes.Code {
		m := want(resourcev3.EndpointType, manyNames(names)...)
		for len(m.Node.Cluster) < fewBytes { // large enough to be counted
			m.Node.Cluster += "0123456789abcdef"
		}
		in, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c := counted{limiter: s.limiter, message: m.ProtoReflect().New().Interface()}
		if err := wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(in)}, &c); err != nil {
			t.Fatal(err)
		}
		equal(t, "decoded", proto.Size(c.message) > 0, c.refusal == nil)
		return status.Code(c.refusal)
	}
	equal(t, "few", refused(11), codes.OK)
	equal(t, "many", refused(12), codes.ResourceExhausted)
	names := manyNames(20)
	s.Update(publish.Update{Assignments: manyAssignments(names, 1)})
	equal(t, "twice what there is", refused(41), codes.OK)
	equal(t, "more", refused(42), codes.ResourceExhausted)
	s.Update(publish.Update{RemovedAssignments: names})
	equal(t, "twice what there was", refused(41), codes.OK)
	equal(t, "more", refused(42), codes.ResourceExhausted)
}
