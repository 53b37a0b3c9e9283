package relay

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// TestWhatTheControlPlaneSentIsNotKept while what became of it is written: a slow client would have
// two copies of a large response.
func TestWhatTheControlPlaneSentIsNotKept(t *testing.T) {
	t.Parallel()
	packed, err := anypb.New(assignmentOf("10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := proto.Marshal(&discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: assignments.typeURL(), Nonce: "1", Resources: []*discoveryv3.Resource{{Name: "web", Version: "1", Resource: packed}},
	})
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan struct{})
	runtime.SetFinalizer(&wire[0], func(*byte) { close(freed) })
	client := newSlowClient()
	ctx, cancel := context.WithCancel(t.Context())
	st := &stream{server: checkedServer(t), method: method{delta: true}, nodeID: "n", client: client, inbox: make(chan arrival), wake: make(chan struct{}, 1), failure: make(chan error, 1)}
	st.server.options.WriteTimeout = 1 << 40
	ended := make(chan error)
	go func() { ended <- st.send(ctx) }()
	st.inbox <- arrival{typeURL: assignments.typeURL(), wire: wire}
	wire = nil
	<-client.got
	kept := true
	for range 100 {
		if !kept {
			break
		}
		runtime.GC()
		runtime.Gosched()
		select {
		case <-freed:
			kept = false
		default:
		}
	}
	if kept {
		t.Error("it is kept")
	}
	close(client.released)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkLargeAnswers: the memory of 20 clients that read nothing of an answer of some 50 MB, which
// the control plane has sent each of them.
func BenchmarkLargeAnswers(b *testing.B) {
	wire := clusterResponse(b, clusters, 280_000)
	for b.Loop() {
		s := benchServer()
		s.options.WriteTimeout = 1 << 40
		ctx, cancel := context.WithCancel(b.Context())
		released := make(chan struct{})
		var sending sync.WaitGroup
		for range 20 {
			client := newSlowClient()
			client.released = released
			st := &stream{server: s, method: method{delta: true}, nodeID: "n", client: client, inbox: make(chan arrival), wake: make(chan struct{}, 1), failure: make(chan error, 1)}
			sending.Go(func() { _ = st.send(ctx) })
			st.inbox <- arrival{typeURL: clusters.typeURL(), wire: bytes.Clone(wire)}
			<-client.got
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
		b.ReportMetric(float64(len(wire))/1e6, "answer-MB")
		cancel()
		close(released)
		sending.Wait()
	}
}
