package scale

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// checker is a simulated one. It connects again whenever its stream ends.
type checker struct {
	id, zone string
	server   string // its address
	world    *world
	interval time.Duration
	phase    time.Duration // within the interval, when it reports
	failed   func(error)   // called with what cannot happen

	reads *door // nil: it always reads

	streams    atomic.Int64 // that it has begun
	received   atomic.Int64 // bytes of specifiers
	specifiers atomic.Int64

	stop func() // ends what start began

	mu        sync.Mutex
	endpoints []int // of the latest specifier; nil without a stream
}

// start connects it, until stop.
func (k *checker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			_ = k.converse(ctx) // hdsd may be down
			k.assign(nil)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	k.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
}

// hello is its first message.
func (k *checker) hello() *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	protocols := []healthv3.Capability_Protocol{healthv3.Capability_HTTP, healthv3.Capability_TCP}
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: &healthv3.HealthCheckRequest{
			Node:       &corev3.Node{Id: k.id, UserAgentName: "simulated", Locality: &corev3.Locality{Region: "eu", Zone: k.zone}},
			Capability: &healthv3.Capability{HealthCheckProtocols: protocols},
		},
	}}
}

var bothWays = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// dial opens a stream on a connection of its own. What is received and sent as
// wire.Bytes is neither decoded nor encoded.
func dial(ctx context.Context, server, method string, more ...grpc.DialOption) (grpc.ClientStream, func() error, error) {
	connection, err := grpc.NewClient(server, append(more, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec()), grpc.MaxCallRecvMsgSize(64<<20)))...)
	if err != nil {
		return nil, nil, err
	}
	stream, err := connection.NewStream(ctx, &bothWays, method)
	if err != nil {
		_ = connection.Close() // err says more
		return nil, nil, err
	}
	return stream, connection.Close, nil
}

// converse is one stream.
func (k *checker) converse(ctx context.Context) error {
	var options []grpc.DialOption
	if k.reads != nil {
		options = append(options, k.reads.dialer())
	}
	stream, hangUp, err := dial(ctx, k.server, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName, options...)
	if err != nil {
		return err
	}
	k.streams.Add(1)
	reports, ended := make(chan *report), make(chan struct{})
	defer func() {
		_ = hangUp()
		for range reports { // until it is seen that the stream ended
		}
	}()
	if err := stream.SendMsg(k.hello()); err != nil {
		close(reports)
		return err
	}
	go k.receive(stream, reports, ended)
	var current *report
	timer := time.NewTimer(k.untilNext())
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return nil
		case current = <-reports:
		case <-timer.C:
			timer.Reset(k.untilNext())
			if current == nil {
				continue
			}
			message := wire.Bytes(current.next())
			if err := stream.SendMsg(&message); err != nil {
				return err
			}
		}
	}
}

// receive hands over a report for each specifier.
func (k *checker) receive(stream grpc.ClientStream, reports chan<- *report, ended chan<- struct{}) {
	defer close(reports)
	defer close(ended)
	var message wire.Bytes
	for stream.RecvMsg(&message) == nil {
		var s healthv3.HealthCheckSpecifier
		err := proto.Unmarshal(message, &s)
		if err == nil {
			var r *report
			if r, err = newReport(k.world, &s); err == nil {
				k.received.Add(int64(len(message)))
				k.specifiers.Add(1)
				k.assign(r)
				reports <- r
			}
		}
		if err != nil {
			k.failed(err)
			return
		}
	}
}

func (k *checker) untilNext() time.Duration {
	return k.interval - (time.Duration(time.Now().UnixNano())-k.phase)%k.interval
}

func (k *checker) assign(r *report) {
	var endpoints []int
	if r != nil {
		endpoints = make([]int, len(r.entries))
		for i := range r.entries {
			endpoints[i] = r.entries[i].endpoint
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endpoints = endpoints
}

func (k *checker) assigned() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.endpoints
}
