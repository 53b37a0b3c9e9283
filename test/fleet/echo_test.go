package fleet

import (
	"context"
	"net"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// echo is the floor of what hdsd does between a report and a push: a bidi
// stream of another server that takes the report's bytes and answers with the
// push's. What to answer is handed over inside this process.
type echo struct {
	stream grpc.BidiStreamingClient[healthv3.HealthCheckRequestOrEndpointHealthResponse, discoveryv3.DeltaDiscoveryResponse]
	answer chan *discoveryv3.DeltaDiscoveryResponse
}

var echoStream = grpc.StreamDesc{StreamName: "Echo", ServerStreams: true, ClientStreams: true}

func startEcho(b *testing.B) *echo {
	b.Helper()
	e := &echo{answer: make(chan *discoveryv3.DeltaDiscoveryResponse, 1)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	described := echoStream
	described.Handler = func(_ any, stream grpc.ServerStream) error {
		for {
			if err := stream.RecvMsg(&healthv3.HealthCheckRequestOrEndpointHealthResponse{}); err != nil {
				return err
			}
			if err := stream.SendMsg(<-e.answer); err != nil {
				return err
			}
		}
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{described}}, e)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Stop
	}()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(func() { cancel(); connection.Close(); server.Stop(); <-served })
	stream, err := connection.NewStream(ctx, &echoStream, "/test.Echo/Echo")
	if err != nil {
		b.Fatal(err)
	}
	e.stream = &grpc.GenericClientStream[healthv3.HealthCheckRequestOrEndpointHealthResponse, discoveryv3.DeltaDiscoveryResponse]{ClientStream: stream}
	return e
}

func (e *echo) roundTrip(b *testing.B, report *healthv3.HealthCheckRequestOrEndpointHealthResponse, push *discoveryv3.DeltaDiscoveryResponse) {
	b.Helper()
	e.answer <- push
	if err := e.stream.Send(report); err != nil {
		b.Fatal(err)
	}
	if _, err := e.stream.Recv(); err != nil {
		b.Fatal(err)
	}
}
