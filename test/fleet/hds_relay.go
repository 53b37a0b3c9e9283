package fleet

import (
	"net"
	"sync"
	"testing"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// hdsRelay stands between checkers and hdsd.
type hdsRelay struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
	hdsd    healthv3.HealthDiscoveryServiceClient
	pass    func(checker string, s *healthv3.HealthCheckSpecifier) error
	reports sync.WaitGroup
}

// RelayHDS returns an address at which checkers reach hdsd. Reports pass as they are, and
// specifiers as pass makes them. An error of it ends the checker's stream instead.
func RelayHDS(t testing.TB, hdsd string, pass func(checker string, s *healthv3.HealthCheckSpecifier) error) (address string) {
	t.Helper()
	connection, err := grpc.NewClient(hdsd, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &hdsRelay{hdsd: healthv3.NewHealthDiscoveryServiceClient(connection), pass: pass}
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

// StreamHealthCheck implements the service.
func (r *hdsRelay) StreamHealthCheck(checker grpc.BidiStreamingServer[healthv3.HealthCheckRequestOrEndpointHealthResponse, healthv3.HealthCheckSpecifier]) error {
	hdsd, err := r.hdsd.StreamHealthCheck(checker.Context())
	if err != nil {
		return err
	}
	first, err := checker.Recv()
	if err != nil {
		return err
	}
	id := first.GetHealthCheckRequest().GetNode().GetId()
	r.reports.Go(func() {
		for report := first; hdsd.Send(report) == nil; { // the other direction returns the reason
			next, err := checker.Recv()
			if err != nil {
				_ = hdsd.CloseSend() // it cannot fail
				return
			}
			report = next
		}
	})
	for {
		specifier, err := hdsd.Recv()
		if err != nil {
			return err
		}
		if err := r.pass(id, specifier); err != nil {
			return err
		}
		if err := checker.Send(specifier); err != nil {
			return err
		}
	}
}
