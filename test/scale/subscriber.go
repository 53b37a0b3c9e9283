package scale

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// subscriber takes all assignments over delta ADS, until the test ends.
type subscriber struct {
	received atomic.Int64 // bytes
}

func subscribe(t testing.TB, server string) *subscriber {
	t.Helper()
	s := &subscriber{}
	ctx, cancel := context.WithCancel(context.Background())
	stream, hangUp, err := dial(ctx, server, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "data-plane"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"*"}}
		var message wire.Bytes
		for stream.SendMsg(request) == nil && stream.RecvMsg(&message) == nil {
			s.received.Add(int64(len(message)))
			var response discoveryv3.DeltaDiscoveryResponse
			if err := proto.Unmarshal(message, &response); err != nil {
				t.Error(err)
				return
			}
			request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
		}
	})
	t.Cleanup(func() { cancel(); _ = hangUp(); running.Wait() })
	return s
}
