package eds

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/peer/access"
)

// answering returns a stream of delta with a response to be acknowledged, and the ACK.
func answering(t testing.TB) (*stream, *discoveryv3.DeltaDiscoveryRequest) {
	t.Helper()
	st := &stream{server: NewServer(Options{}), permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}
	if err := st.process(&request{typeURL: resourcev3.EndpointType, names: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	u, _ := st.next()
	return st, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: u.table.typeURL, ResponseNonce: u.delivery.nonce}
}

// arrive makes an encoded request arrive on a stream again and again.
func arrive(t testing.TB, st *stream, m proto.Message) {
	t.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	st.grpc = arriving{request: mem.BufferSlice{mem.SliceBuffer(encoded)}}
}

func TestAnACKOfDeltaIsReadWithoutGarbage(t *testing.T) {
	st, ack := answering(t)
	arrive(t, st, ack)
	read := st.reader()
	if allocated := testing.AllocsPerRun(100, func() {
		r, err := read()
		if err != nil || r.typeURL != ack.GetTypeUrl() || r.nonce != ack.GetResponseNonce() {
			t.Errorf("read %v, %v", r, err)
		}
	}); allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestNothingOfARequestIsInTheNext: the memory of a message is used again.
func TestNothingOfARequestIsInTheNext(t *testing.T) {
	st, ack := answering(t)
	full := subscribe(ack.GetTypeUrl(), "b", "c")
	full.ResourceNamesUnsubscribe, full.ResponseNonce = []string{"d"}, ack.GetResponseNonce()
	full.InitialResourceVersions = map[string]string{"e": "1"}
	full.ErrorDetail = nack(new(discoveryv3.DeltaDiscoveryResponse), "no").GetErrorDetail()
	read := st.reader()
	for _, m := range []*discoveryv3.DeltaDiscoveryRequest{full, ack, full, {TypeUrl: resourcev3.ClusterType}} {
		arrive(t, st, m)
		r, err := read()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "type", r.typeURL, m.GetTypeUrl())
		equal(t, "nonce", r.nonce, m.GetResponseNonce())
		equal(t, "node", proto.Equal(r.node, m.GetNode()), true)
		equal(t, "names", len(r.names), len(m.GetResourceNamesSubscribe()))
		equal(t, "names that are given up", len(r.unsubscribe), len(m.GetResourceNamesUnsubscribe()))
		equal(t, "versions", len(r.versions), len(m.GetInitialResourceVersions()))
		equal(t, "refused", r.refusal != nil, m.GetErrorDetail() != nil)
	}
}

// FuzzDeltaACKs holds that a request is the same to hdsd whether it is read as an ACK or
// decoded.
func FuzzDeltaACKs(f *testing.F) {
	st, ack := answering(f)
	refuses := proto.CloneOf(ack)
	refuses.ErrorDetail = nack(new(discoveryv3.DeltaDiscoveryResponse), "no").GetErrorDetail()
	asks := proto.CloneOf(ack)
	asks.ResourceNamesSubscribe = []string{"b"}
	for _, m := range []*discoveryv3.DeltaDiscoveryRequest{ack, refuses, asks, {ResponseNonce: ack.GetResponseNonce()}, {TypeUrl: ack.GetTypeUrl(), ResponseNonce: "0.1"}} {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		m := st.newDeltaMessage()
		if err := wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded)}, m); err != nil || !m.isACK {
			return
		}
		plain := new(discoveryv3.DeltaDiscoveryRequest)
		if err := proto.Unmarshal(encoded, plain); err != nil || !proto.Equal(plain, ack) {
			t.Errorf("%v, %v is taken for an ACK", plain, err)
		}
	})
}

// BenchmarkDeltaACK takes an ACK of delta.
func BenchmarkDeltaACK(b *testing.B) {
	st, ack := answering(b)
	arrive(b, st, ack)
	read := st.reader()
	b.ReportAllocs()
	for b.Loop() {
		r, err := read()
		if err == nil {
			err = st.process(r)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
