package eds

import (
	"runtime"
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// TestAClientMayNameEveryResource: however many resources there are, a data plane that
// names each of them gets them all, and costs only what it names.
func TestAClientMayNameEveryResource(t *testing.T) {
	const perName = 2 << 10 // of both clients and the server together
	for _, n := range []int{60_000, 110_000} {
		inBubble(t, Options{}, func(t *testing.T, b *bench) {
			names := manyNames(n)
			before := heap()
			b.server.Update(Update{Assignments: manyAssignments(names, 1)})
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

// heap returns how many bytes are in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

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
	s.Update(Update{Assignments: manyAssignments(names, 1)})
	equal(t, "twice what there is", refused(41), codes.OK)
	equal(t, "more", refused(42), codes.ResourceExhausted)
	s.Update(Update{RemovedAssignments: names})
	equal(t, "twice what there was", refused(41), codes.OK)
	equal(t, "more", refused(42), codes.ResourceExhausted)
}
