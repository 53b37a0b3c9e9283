package eds

import (
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
	"hdsd/internal/wire"
	"hdsd/peer/access"
	"hdsd/publish"
)

func newStateStream() *stream {
	return &stream{server: NewServer(Options{ZoneVariants: true}), permitted: access.AllClusters(), wake: make(chan struct{}, 1)}
}

// receiveState decodes a request as the stream does.
func receiveState(st *stream, encoded []byte) (*stateMessage, error) {
	m := st.newStateMessage()
	return m, wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded)}, m)
}

// takeState makes a stream take a request, and returns it.
func takeState(t testing.TB, st *stream, m proto.Message) *stateMessage {
	t.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := receiveState(st, encoded)
	if err == nil {
		err = st.process(st.stateMessageRequest(got))
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestNamesThatRepeatAreNotDecoded: each ACK has all names again.
func TestNamesThatRepeatAreNotDecoded(t *testing.T) {
	t.Run("alone", func(t *testing.T) { repeatNames(t, newStateStream(), false) })
	t.Run("in a group", func(t *testing.T) {
		st := newStateStream()
		st.server.Update(publish.Update{Assignments: manyAssignments(manyNames(1000), 1)})
		repeatNames(t, st, true)
	})
}

func repeatNames(t *testing.T, st *stream, grouped bool) {
	names, other := manyNames(1000), manyNames(500)
	step := func(repeats bool, m *discoveryv3.DiscoveryRequest) {
		t.Helper()
		got := takeState(t, st, m)
		if got.repeats != repeats {
			t.Fatalf("repeats: %v, want %v", got.repeats, repeats)
		}
		want := proto.CloneOf(m)
		if repeats {
			want.ResourceNames = nil
		}
		if !proto.Equal(got.request, want) {
			t.Fatalf("decoded %v, want %v", got.request, want)
		}
	}
	watches := func(want int) {
		t.Helper()
		_, u := st.pair()
		equal(t, "watches", u.interest.named, want)
	}
	eds := func(names ...string) *discoveryv3.DiscoveryRequest { return want(resourcev3.EndpointType, names...) }
	nacked := eds(names...)
	nacked.Node, nacked.ResponseNonce, nacked.VersionInfo = nil, "1.1", "7"
	nacked.ErrorDetail = nack(new(discoveryv3.DeltaDiscoveryResponse), "no").GetErrorDetail()
	located := eds(names...)
	located.ResourceLocators = []*discoveryv3.ResourceLocator{locator("x")}

	step(false, eds(names...))
	_, u := st.pair()
	equal(t, "names are those of a group", u.requests.names.key != "", grouped)
	step(true, nacked)
	step(false, want(resourcev3.ClusterType, names...)) // those of another type
	step(true, want(resourcev3.ClusterType, names...))
	step(true, eds(names...))
	watches(1000)
	step(false, eds(append(slices.Clone(names), "more")...))
	watches(1001)
	step(false, eds(other...)) // the last ones begin with them
	watches(500)
	step(true, eds(other...))
	step(false, located)
	watches(1001)
	step(false, located)
	step(false, eds(names...))
	watches(1000)
	step(false, eds(names[1:]...))
	watches(999)
	step(false, eds())
	watches(0)
	step(false, eds())
}

// FuzzRepeatedNames holds that a second request is the same to hdsd whether its names are
// compared with those of the first or decoded.
func FuzzRepeatedNames(f *testing.F) {
	seed := func(a, b *discoveryv3.DiscoveryRequest) {
		x, _ := proto.Marshal(a)
		y, _ := proto.Marshal(b)
		f.Add(x, y)
	}
	seed(want(resourcev3.EndpointType, "a", "b"), ackState(&discoveryv3.DiscoveryResponse{TypeUrl: resourcev3.EndpointType, Nonce: "1.1"}, "a", "b"))
	seed(want(resourcev3.EndpointType, "a", "b"), want(resourcev3.EndpointType, "a", "b", "c"))
	seed(want(resourcev3.ClusterType, "a"), want(resourcev3.EndpointType, "a"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		st := newStateStream()
		first, err := receiveState(st, a)
		if err != nil || first.refusal != nil {
			return
		}
		before := st.stateMessageRequest(first)
		u, err := st.subscription(before)
		if err != nil || u == nil {
			return
		}
		u.requests.names, u.delivery.nonce = before.span, "1.1"

		plain := new(discoveryv3.DiscoveryRequest)
		wantErr := wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, plain)
		got, err := receiveState(st, b)
		if got.refusal != nil {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("decoded: %v, plainly: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if got.repeats {
			if st.typeOf(plain.GetTypeUrl()) != u.table.typeURL || !slices.Equal(plain.GetResourceNames(), first.request.GetResourceNames()) {
				t.Fatalf("%v is taken to repeat %v", plain, first.request)
			}
			plain.ResourceNames = nil
		}
		if got.isACK {
			got.request = &discoveryv3.DiscoveryRequest{VersionInfo: plain.GetVersionInfo(), TypeUrl: got.ack.typeURL, ResponseNonce: got.ack.nonce}
		}
		if !proto.Equal(got.request, plain) {
			t.Fatalf("decoded %v, plainly %v", got.request, plain)
		}
	})
}

// BenchmarkStateAck takes an ACK that repeats 1,000 names, and one that has to be decoded.
func BenchmarkStateAck(b *testing.B) {
	request := want(resourcev3.EndpointType, manyNames(1000)...)
	request.Node = nil
	encoded, err := proto.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"compared", "in a group", "decoded"} {
		b.Run(name, func(b *testing.B) {
			st, forget := newStateStream(), name == "decoded"
			if name == "in a group" {
				st.server.Update(publish.Update{Assignments: manyAssignments(manyNames(1000), 1)})
			}
			takeState(b, st, request)
			b.ReportAllocs()
			for b.Loop() {
				if forget {
					_, u := st.pair()
					u.requests.names = span{}
				}
				m, err := receiveState(st, encoded)
				if err == nil {
					err = st.process(st.stateMessageRequest(m))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNamesInPartsAreNoRepeat: a client gives up a name of a request whose names do not
// follow each other, or are tagged in an unusual way.
func TestNamesInPartsAreNoRepeat(t *testing.T) {
	name := func(to []byte, name string) []byte {
		return protowire.AppendString(protowire.AppendTag(to, fields.RequestNames, protowire.BytesType), name)
	}
	typed := func(to []byte) []byte {
		return protowire.AppendString(protowire.AppendTag(to, 4, protowire.BytesType), resourcev3.EndpointType)
	}
	longTag := []byte{nameTag | 0x80, 0}
	for title, first := range map[string][]byte{
		"a field between": name(typed(name(nil, "a")), "b"),
		"a long tag":      typed(protowire.AppendString(append(name(nil, "a"), longTag...), "b")),
	} {
		t.Run(title, func(t *testing.T) {
			st := newStateStream()
			st.server.Update(publish.Update{Assignments: manyAssignments([]string{"a", "b"}, 1)})
			for _, encoded := range [][]byte{first, typed(name(nil, "a"))} {
				got, err := receiveState(st, encoded)
				if err == nil {
					err = st.process(st.stateMessageRequest(got))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			_, u := st.pair()
			equal(t, "names", u.interest.named, 1)
		})
	}
}
