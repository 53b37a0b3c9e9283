package scale

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// TestManyLargeRequestsDelayNobody: a crowd sends requests with one enormous name, again and
// again. All are refused, and detection goes on. HDSD_SCALE=full has 100 clients with 60 MiB
// each, and compares detection with that of an undisturbed hdsd.
func TestManyLargeRequestsDelayNobody(t *testing.T) {
	s, d := attacked(t)
	encoded, err := proto.Marshal(&discoveryv3.DiscoveryRequest{
		TypeUrl: resourcev3.EndpointType, ResourceNames: []string{string(bytes.Repeat([]byte("x"), crowdSize(8, 60)<<20))},
	})
	if err != nil {
		t.Fatal(err)
	}
	span := time.Duration(crowdSize(2, 20)) * time.Second
	undisturbed := d.during(t, span, 100*time.Millisecond)
	rest := usageOf(t, s.PID()).resident
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var crowd sync.WaitGroup
	var mu sync.Mutex
	ended := map[codes.Code]int{}
	for range crowdSize(10, 100) {
		crowd.Go(func() {
			for ctx.Err() == nil {
				code := status.Code(sendOnce(ctx, s.GRPC, encoded))
				mu.Lock()
				ended[code]++
				mu.Unlock()
			}
		})
	}
	crowded := d.during(t, span, 100*time.Millisecond)
	stop()
	crowd.Wait()
	s.compareDelays(undisturbed, crowded)
	more := (usageOf(t, s.PID()).peak - rest) >> 20
	t.Logf("they ended with %v; RSS %d MiB more than at rest", ended, more)
	if full() && more > 300 { // the race detector has memory of its own
		t.Errorf("hdsd needs %d MiB more", more)
	}
	if ended[codes.OK] > 0 || ended[codes.ResourceExhausted] == 0 {
		t.Errorf("they ended with %v", ended)
	}
}

// sendOnce sends a request on a connection of its own, and gives how its stream ends.
func sendOnce(ctx context.Context, server string, request wire.Bytes) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, hangUp, err := dial(ctx, server, discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName)
	if err != nil {
		return err
	}
	defer func() { _ = hangUp() }()
	_ = stream.SendMsg(&request) // the end of the stream says why not
	var answer wire.Bytes
	for {
		if err := stream.RecvMsg(&answer); err != nil {
			return err
		}
	}
}
