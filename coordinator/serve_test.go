package coordinator

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/publish"
)

// TestStopWaitsForCalls covers calls that last longer than a stop may, in virtual time.
func TestStopWaitsForCalls(t *testing.T) {
	const long = time.Minute
	for name, test := range map[string]struct {
		begin func(t *testing.T, s *servers)
		took  time.Duration
	}{
		"nothing":        {func(*testing.T, *servers) {}, 0},
		"a gRPC stream":  {func(t *testing.T, s *servers) { watchHealth(t, s, long) }, drainTimeout},
		"a short stream": {func(t *testing.T, s *servers) { watchHealth(t, s, time.Second) }, time.Second},
		"a request":      {func(t *testing.T, s *servers) { request(t, s) }, drainTimeout},
		"both":           {func(t *testing.T, s *servers) { watchHealth(t, s, long); request(t, s) }, drainTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &servers{
					bounds:   newBounds(prometheus.NewRegistry(), zerolog.Nop(), &configv1.Limits{}, 0),
					refusals: newPlaneRefusals(zerolog.Nop(), prometheus.NewRegistry(), func() []publish.Refuser { return nil }),
					grpc:     grpc.NewServer(), grpcListener: bufconn.Listen(64 << 10), httpListener: bufconn.Listen(64 << 10),
					http: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						select {
						case <-r.Context().Done():
						case <-time.After(long):
						}
					})},
				}
				grpc_health_v1.RegisterHealthServer(s.grpc, health.NewServer())
				wait := s.serve(func(err error) { t.Error(err) })
				test.begin(t, s)
				synctest.Wait()
				began := time.Now()
				s.stop()
				if took := time.Since(began); took != test.took {
					t.Errorf("the stop took %v, want %v", took, test.took)
				}
				wait()
			})
		})
	}
}

// watchHealth opens a stream that its client ends, after a while.
func watchHealth(t *testing.T, s *servers, lasts time.Duration) {
	connection, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return s.grpcListener.(*bufconn.Listener).DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	t.Cleanup(func() { cancel(); connection.Close() })
	stream, err := grpc_health_v1.NewHealthClient(connection).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// request asks for what takes long, and does not go away.
func request(t *testing.T, s *servers) {
	connection, err := s.httpListener.(*bufconn.Listener).DialContext(t.Context())
	if err == nil {
		_, err = connection.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
}
