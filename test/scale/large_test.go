package scale

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// TestManyLargeRequestsDelayNobody: crowds send requests with one enormous name, and reports
// of enormously many entries, again and again. All are refused, and detection goes on.
// HDSD_SCALE=full has 100 clients with 60 MiB each, and compares detection with that of an
// undisturbed hdsd.
func TestManyLargeRequestsDelayNobody(t *testing.T) {
	size := crowdSize(8, 60) << 20
	name := bytesOf(t, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{string(bytes.Repeat([]byte("x"), size))}})
	report := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x0a, 0}, size/2))
	for _, crowd := range []struct {
		name, method string
		messages     func(n int) []wire.Bytes
		refusal      codes.Code
	}{
		{"names", discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName, func(int) []wire.Bytes { return []wire.Bytes{name} }, codes.ResourceExhausted},
		{"reports", healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName, func(n int) []wire.Bytes {
			k := checker{id: fmt.Sprint("bomber-", n), zone: "a"}
			return []wire.Bytes{bytesOf(t, k.hello()), report}
		}, codes.InvalidArgument}, // no checker has so much to say
	} {
		t.Run(crowd.name, func(t *testing.T) {
			s, d := attacked(t)
			span := time.Duration(crowdSize(2, 20)) * time.Second
			undisturbed := d.during(t, span, 100*time.Millisecond)
			rest := usageOf(t, s.PID()).resident
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			var running sync.WaitGroup
			var mu sync.Mutex
			ended := map[codes.Code]int{}
			for n := range crowdSize(10, 100) {
				running.Go(func() {
					for ctx.Err() == nil {
						code := status.Code(sendOnce(ctx, s.GRPC, crowd.method, crowd.messages(n)))
						mu.Lock()
						ended[code]++
						mu.Unlock()
					}
				})
			}
			crowded := d.during(t, span, 100*time.Millisecond)
			s.until("a refusal", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return ended[crowd.refusal] > 0
			})
			stop()
			running.Wait()
			s.compareDelays(undisturbed, crowded)
			more := (usageOf(t, s.PID()).peak - rest) >> 20
			t.Logf("they ended with %v; RSS %d MiB more than at rest", ended, more)
			if full() && more > 300 { // the race detector has memory of its own
				t.Errorf("hdsd needs %d MiB more", more)
			}
			if ended[codes.OK] > 0 || ended[crowd.refusal] == 0 {
				t.Errorf("they ended with %v", ended)
			}
		})
	}
}

func bytesOf(t *testing.T, m proto.Message) wire.Bytes {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sendOnce sends messages on a connection of its own, and gives how its stream ends.
func sendOnce(ctx context.Context, server, method string, messages []wire.Bytes) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, hangUp, err := dial(ctx, server, method)
	if err != nil {
		return err
	}
	defer func() { _ = hangUp() }()
	for _, m := range messages {
		_ = stream.SendMsg(&m) // the end of the stream says why not
	}
	var answer wire.Bytes
	for {
		if err := stream.RecvMsg(&answer); err != nil {
			return err
		}
	}
}
