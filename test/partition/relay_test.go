package partition

import (
	"net"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// relay stands between one checker and hdsd, and makes the checker probe from an
// address.
type relay struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
	hdsd    healthv3.HealthDiscoveryServiceClient
	source  *corev3.BindConfig
	reports sync.WaitGroup
}

// startRelay returns the address of the relay.
func startRelay(t *testing.T, hdsd, source string) (address string) {
	t.Helper()
	connection, err := grpc.NewClient(hdsd, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{
		hdsd:   healthv3.NewHealthDiscoveryServiceClient(connection),
		source: &corev3.BindConfig{SourceAddress: &corev3.SocketAddress{Address: source, PortSpecifier: &corev3.SocketAddress_PortValue{}}},
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	healthv3.RegisterHealthDiscoveryServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends with Stop
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
		r.reports.Wait()
		_ = connection.Close() // it has no users any more
	})
	return listener.Addr().String()
}

// StreamHealthCheck passes on reports as they are, and specifiers with the
// address to probe from.
func (r *relay) StreamHealthCheck(checker grpc.BidiStreamingServer[healthv3.HealthCheckRequestOrEndpointHealthResponse, healthv3.HealthCheckSpecifier]) error {
	hdsd, err := r.hdsd.StreamHealthCheck(checker.Context())
	if err != nil {
		return err
	}
	r.reports.Go(func() {
		for {
			report, err := checker.Recv()
			if err != nil {
				_ = hdsd.CloseSend() // it cannot fail
				return
			}
			if hdsd.Send(report) != nil {
				return // the other direction returns the reason
			}
		}
	})
	for {
		specifier, err := hdsd.Recv()
		if err != nil {
			return err
		}
		for _, cluster := range specifier.GetClusterHealthChecks() {
			cluster.UpstreamBindConfig = r.source
		}
		if err := checker.Send(specifier); err != nil {
			return err
		}
	}
}
