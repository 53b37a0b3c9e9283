package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/peer/access"
	"hdsd/publish"
)

// arriving is a stream on which a request arrives.
type arriving struct {
	grpc.ServerStream
	request mem.BufferSlice
}

func (s arriving) RecvMsg(m any) error { return wire.Codec().Unmarshal(s.request, m) }

// BenchmarkFirstSync has a client come that subscribes to 1,000 assignments by name, get what it
// lacks, acknowledge and leave, while 499 others watch the same. It comes for the first time, or
// has all of them from an earlier stream.
func BenchmarkFirstSync(b *testing.B) {
	names := manyNames(1000)
	s := NewServer(Options{Identifier: "hdsd-1"})
	defer s.Close()
	s.Update(publish.Update{Assignments: manyAssignments(names, 3)})
	request := subscribe(resourcev3.EndpointType, names...)
	first := encodedRequest(b, request)
	request.InitialResourceVersions = make(map[string]string)
	for range 499 {
		for _, r := range comes(b, s, first).resources() {
			request.InitialResourceVersions[r.Name] = r.Version
		}
	}
	again := encodedRequest(b, request)
	for name, each := range map[string]mem.BufferSlice{"first": first, "again": again} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				comes(b, s, each).end()
			}
		})
	}
}

func encodedRequest(b *testing.B, m proto.Message) mem.BufferSlice {
	encoded, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	return mem.BufferSlice{mem.SliceBuffer(encoded)}
}

// comes has a client come and get what it lacks.
func comes(b *testing.B, s *Server, request mem.BufferSlice) *subscription {
	st := &stream{server: s, grpc: arriving{request: request}, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}
	r, err := st.reader()()
	if err == nil {
		err = st.process(r)
	}
	if err != nil {
		b.Fatal(err)
	}
	u := st.subs[1]
	for respond(u) > 0 {
	}
	return u
}
