package eds

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/access"
	"hdsd/internal/wire"
)

// arriving is a stream on which a request arrives.
type arriving struct {
	grpc.ServerStream
	request mem.BufferSlice
}

func (s arriving) RecvMsg(m any) error { return wire.Codec().Unmarshal(s.request, m) }

// BenchmarkFirstSync has a client come that subscribes to 1,000 assignments by name, get all
// of them, acknowledge and leave, while 499 others watch the same.
func BenchmarkFirstSync(b *testing.B) {
	names := manyNames(1000)
	s := NewServer(Options{Identifier: "hdsd-1"})
	defer s.Close()
	s.Update(Update{Assignments: manyAssignments(names, 3)})
	request, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: names})
	if err != nil {
		b.Fatal(err)
	}
	come := func() *subscription {
		st := &stream{
			server: s, grpc: arriving{request: mem.BufferSlice{mem.SliceBuffer(request)}},
			may: access.AllClusters(), delta: true, wake: make(chan struct{}, 1),
		}
		r, err := st.read()
		if err != nil {
			b.Fatal(err)
		}
		if err := st.take(r); err != nil {
			b.Fatal(err)
		}
		u := st.subs[1]
		for respond(u) > 0 {
		}
		return u
	}
	for range 499 {
		come()
	}
	b.ReportAllocs()
	for b.Loop() {
		come().end()
	}
}
