package check

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	coordinated "hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/test/upstream"
)

// coordinator is a scripted HDS server. Each stream that comes is handed to
// the test, which drives it.
type coordinator struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
	streams chan *serverStream
}

// serverStream is one stream; it ends when the test calls end.
type serverStream struct {
	healthv3.HealthDiscoveryService_StreamHealthCheckServer
	done chan error
}

func (c *coordinator) StreamHealthCheck(s healthv3.HealthDiscoveryService_StreamHealthCheckServer) error {
	mine := &serverStream{s, make(chan error, 1)}
	select {
	case c.streams <- mine:
	case <-s.Context().Done():
		return s.Context().Err()
	}
	select {
	case err := <-mine.done:
		return err
	case <-s.Context().Done():
		return s.Context().Err()
	}
}

func (s *serverStream) end(err error) { s.done <- err }

func (s *serverStream) receive(t testing.TB) *request {
	t.Helper()
	m, err := s.Recv()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return m
}

func (s *serverStream) send(t testing.TB, m *healthv3.HealthCheckSpecifier) {
	t.Helper()
	if err := s.Send(m); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// waitStatus reads reports until the only endpoint has a status.
func (s *serverStream) waitStatus(t testing.TB, want corev3.HealthStatus) {
	t.Helper()
	for range 10_000 {
		list := s.receive(t).GetEndpointHealthResponse().GetEndpointsHealth()
		if len(list) == 1 && list[0].GetHealthStatus() == want {
			return
		}
	}
	t.Fatalf("%s was not reported", want)
}

// serve runs a coordinator on a listener.
func serve(t testing.TB, l net.Listener) *coordinator {
	c := &coordinator{streams: make(chan *serverStream)}
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	healthv3.RegisterHealthDiscoveryServiceServer(server, c)
	var work sync.WaitGroup
	work.Go(func() { server.Serve(l) })
	t.Cleanup(func() { server.Stop(); work.Wait() })
	return c
}

// startChecker runs a checker against a coordinator in memory, and returns the
// first stream with its first message.
func startChecker(t testing.TB, log *bytes.Buffer) (*coordinator, *serverStream, *request) {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	c := serve(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	logger := zerolog.Nop()
	if log != nil {
		logger = zerolog.New(log)
	}
	var work sync.WaitGroup
	work.Go(func() {
		err := Run(ctx, Options{
			Server: "coordinator:1", NodeID: "checker-1", Version: "v1.2.3-rc1", Log: logger,
			Locality: health.Locality{Region: "r", Zone: "z", SubZone: "s"}, Metadata: map[string]string{"vpc": "blue"},
			DialServer: func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) },
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); work.Wait() })
	s := <-c.streams
	return c, s, s.receive(t)
}

func TestFirstMessage(t *testing.T) {
	_, _, first := startChecker(t, nil)
	r := first.GetHealthCheckRequest()
	n := r.GetNode()
	if n.GetId() != "checker-1" || n.GetUserAgentName() != "hdsd" ||
		n.GetUserAgentVersion() != "v1.2.3-rc1" ||
		!proto.Equal(n.GetLocality(), &corev3.Locality{Region: "r", Zone: "z", SubZone: "s"}) ||
		n.GetMetadata().GetFields()["vpc"].GetStringValue() != "blue" {
		t.Errorf("node %v", n)
	}
	protocols := r.GetCapability().GetHealthCheckProtocols()
	if !slices.Equal(protocols, []healthv3.Capability_Protocol{healthv3.Capability_HTTP, healthv3.Capability_TCP, healthv3.Capability_REDIS}) {
		t.Errorf("capability %v", protocols)
	}
	c, err := coordinated.CheckerFromNode(n, r.GetCapability())
	// What is not here is not sent to it: SDS and signature algorithms among others.
	want := []health.Ability{health.FreshCodes, health.GRPC, health.HTTP, health.Redis, health.SeveralChecks, health.TCP, "envoy.health_checkers.grpc", redisName, tlsName}
	if got := slices.Sorted(maps.Keys(c.Abilities)); err != nil || !slices.Equal(got, want) {
		t.Errorf("a coordinator takes it to be able to do %v, %v; want %v", got, err, want)
	}
}

func TestReportsAndChanges(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	_, s, _ := startChecker(t, nil)
	s.send(t, one(httpHealthCheck(), endpoint(u.Addr())))
	s.waitStatus(t, corev3.HealthStatus_HEALTHY)
	u.Set(upstream.Status(500))
	s.waitStatus(t, corev3.HealthStatus_UNHEALTHY)
	s.send(t, specifierOf())
	for s.receive(t).GetRequestType() != nil { // until there are heartbeats
	}
}

func TestRejectedSpecifierChangesNothing(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	var log bytes.Buffer
	_, s, _ := startChecker(t, &log)
	bad := one(httpHealthCheck(expecting(0, 1)), endpoint("127.0.0.1:1"), endpoint("127.0.0.1:2"))
	s.send(t, bad) // as the first one: silence
	s.send(t, one(httpHealthCheck(), endpoint(u.Addr())))
	s.waitStatus(t, corev3.HealthStatus_HEALTHY)
	s.send(t, bad)
	for range 20 {
		s.waitStatus(t, corev3.HealthStatus_HEALTHY)
	}
	s.send(t, one(httpHealthCheck(), endpoint(u.Addr()), endpoint("127.0.0.1:1")))
	for len(s.receive(t).GetEndpointHealthResponse().GetEndpointsHealth()) != 2 { // all before it were followed
	}
	if n := bytes.Count(log.Bytes(), []byte("expected_statuses")); n != 2 {
		t.Errorf("%d lines of the log name the reason:\n%s", n, log.String())
	}
}

func TestResultsSurviveReconnect(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	var log bytes.Buffer
	c, s, _ := startChecker(t, &log)
	m := one(httpHealthCheck(rarely), endpoint(u.Addr()))
	s.send(t, m)
	s.waitStatus(t, corev3.HealthStatus_HEALTHY)
	s.end(status.Error(codes.Unavailable, "drains"))
	u.Set(upstream.Refuse()) // a new host would be down
	again := <-c.streams
	if first := again.receive(t); first.GetHealthCheckRequest().GetNode().GetId() != "checker-1" {
		t.Errorf("first message %v", first)
	}
	again.send(t, m)
	got := again.receive(t).GetEndpointHealthResponse().GetEndpointsHealth()
	if len(got) != 1 || got[0].GetHealthStatus() != corev3.HealthStatus_HEALTHY {
		t.Errorf("got %v", got)
	}
	if told := log.String(); strings.Count(told, "coordinator_lost") != 1 || strings.Count(told, "coordinator_found") != 1 { // no line since it reported
		t.Errorf("the log:\n%s", told)
	}
}

// TestTheNextReplica is tried when the stream to one ends, and when one cannot be reached.
func TestTheNextReplica(t *testing.T) {
	reached := map[string]*bufconn.Listener{"a:1": bufconn.Listen(1 << 16), "b:1": bufconn.Listen(1 << 16)}
	streams := map[string]*coordinator{}
	for address, l := range reached {
		streams[address] = serve(t, l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		err := Run(ctx, Options{
			Server: "a:1", Replicas: []string{"gone:1", "b:1"}, NodeID: "checker-1", Log: zerolog.Nop(),
			DialServer: func(ctx context.Context, address string) (net.Conn, error) {
				if l := reached[address]; l != nil {
					return l.DialContext(ctx)
				}
				return nil, errors.New("refused")
			},
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); work.Wait() })
	last := ""
	for range 4 {
		var s *serverStream
		var address string
		select {
		case s = <-streams["a:1"].streams:
			address = "a:1"
		case s = <-streams["b:1"].streams:
			address = "b:1"
		}
		if address == last {
			t.Errorf("the checker returns to %s", address)
		}
		last = address
		s.receive(t)
		s.send(t, specifierOf())
		s.receive(t)
		s.end(status.Error(codes.Unavailable, "drains"))
	}
}

// An interval of zero means never; another one starts the reports again.
func TestReportInterval(t *testing.T) {
	_, s, _ := startChecker(t, nil)
	never := specifierOf(clusterOf("never", nil, group("a", endpoint("127.0.0.1:1"))))
	never.Interval = durationpb.New(0)
	s.send(t, never)
	s.send(t, specifierOf(clusterOf("now", nil, group("a", endpoint("127.0.0.1:1")))))
	first := s.receive(t).GetEndpointHealthResponse().GetClusterEndpointsHealth()
	if len(first) != 1 || first[0].GetClusterName() != "now" {
		t.Errorf("got %v", first)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {Server: "x"}, {NodeID: "x"}, {Server: "x", NodeID: "x", MaxDials: -1}} {
		if err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestBackoff(t *testing.T) {
	least, most := func(int64) int64 { return 0 }, func(n int64) int64 { return n - 1 }
	for attempt, want := range []time.Duration{400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 5 * time.Second, 5 * time.Second} {
		if got := backoff(attempt, most); got != want {
			t.Errorf("attempt %d: at most %s, want %s", attempt, got, want)
		}
		if got := backoff(attempt, least); got != 200*time.Millisecond {
			t.Errorf("attempt %d: at least %s", attempt, got)
		}
	}
	if got := backoff(1<<40, most); got != 5*time.Second {
		t.Errorf("after very many: %s", got)
	}
}
