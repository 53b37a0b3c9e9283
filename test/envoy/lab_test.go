package envoy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// patience is how long an Envoy may take for anything on a busy machine.
const patience = 30 * time.Second

// lab is an HDS server that sends whatever it is given, and an upstream whose
// every probe passes.
type lab struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
	address  string
	upstream *endpointv3.Endpoint // HTTP
	secure   *endpointv3.Endpoint // the same over TLS
	file     string               // holds a certificate
	serial   atomic.Uint64

	mu       sync.Mutex
	sessions map[string]*session // by node id; guarded by mu
}

// session is the stream of one Envoy.
type session struct {
	node       *corev3.Node
	capability *healthv3.Capability
	out        chan *healthv3.HealthCheckSpecifier
	report     atomic.Pointer[healthv3.EndpointHealthResponse] // the latest
	count      atomic.Uint64                                   // reports so far
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{sessions: map[string]*session{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = listener.Addr().String()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	healthv3.RegisterHealthDiscoveryServiceServer(server, l)
	secretv3.RegisterSecretDiscoveryServiceServer(server, secretService{})
	l.file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(l.file, []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) }) // ends by Stop
	t.Cleanup(func() { server.Stop(); wg.Wait() })
	l.upstream, l.secure = endpointOf(upstream(t, nil)), endpointOf(upstream(t, serverTLS()))
	return l
}

// upstream starts a server that answers 200 over HTTP/1.1 and HTTP/2, with
// TLS or without.
func upstream(t testing.TB, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Protocols: protocols, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) }) // ends by Close
	t.Cleanup(func() { server.Close(); wg.Wait() })
	return listener.Addr().String()
}

func endpointOf(hostPort string) *endpointv3.Endpoint {
	host, port, _ := net.SplitHostPort(hostPort)
	number, _ := strconv.ParseUint(port, 10, 16)
	return &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(number)},
	}}}}
}

// StreamHealthCheck sends an Envoy what its session is given.
func (l *lab) StreamHealthCheck(stream healthv3.HealthDiscoveryService_StreamHealthCheckServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s := &session{node: first.GetHealthCheckRequest().GetNode(), capability: first.GetHealthCheckRequest().GetCapability(), out: make(chan *healthv3.HealthCheckSpecifier, 1)}
	l.mu.Lock()
	l.sessions[s.node.GetId()] = s
	l.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	wg.Go(func() {
		for {
			select {
			case spec := <-s.out:
				_ = stream.Send(spec) // the receiving half sees the stream's end
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil
		}
		s.report.Store(message.GetEndpointHealthResponse())
		s.count.Add(1)
	}
}

func (l *lab) session(id string) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions[id]
}

// subject is an Envoy in the lab.
type subject struct {
	*Process
	lab *lab
	*session
}

// subject starts one, in a folder where nobody can write: what one hostile
// value has it write must not be there for the next to read.
func (l *lab) subject(t testing.TB, version string) *subject {
	t.Helper()
	id := fmt.Sprintf("subject-%d", l.serial.Add(1))
	s := &subject{Process: StartChecker(t, Checker{ID: id, HDS: l.address, Version: version, Folder: "/proc"}), lab: l}
	Eventually(t, patience, "the Envoy to connect", func() bool {
		s.session = l.session(id)
		return s.session != nil
	})
	return s
}

// effect is what a specifier does to an Envoy.
type effect string

const (
	fine     effect = "fine"
	killed   effect = "killed"
	silenced effect = "silenced" // rejected in whole or in part, in silence
	blinded  effect = "blinded"  // good clusters are no longer found healthy
)

// try sends clusters between two good ones, and tells what happens within the
// time of several probes.
func (s *subject) try(t testing.TB, clusters []*healthv3.ClusterHealthCheck) effect {
	t.Helper()
	n := s.lab.serial.Add(1)
	first, last := fmt.Sprintf("good-%d-first", n), fmt.Sprintf("good-%d-last", n)
	spec := &healthv3.HealthCheckSpecifier{Interval: durationpb.New(20 * time.Millisecond)}
	spec.ClusterHealthChecks = append(spec.ClusterHealthChecks, s.lab.good(first))
	spec.ClusterHealthChecks = append(spec.ClusterHealthChecks, clusters...)
	spec.ClusterHealthChecks = append(spec.ClusterHealthChecks, s.lab.good(last))
	before := s.hdsErrors(t)
	s.out <- spec
	rejected := false
	accepted := Await(10*time.Second, func() bool {
		if !s.Alive() || s.healthy(first) && s.healthy(last) {
			return true
		}
		rejected = rejected || s.hdsErrors(t) > before
		return rejected
	})
	switch {
	case !s.Alive():
		return killed
	case rejected || accepted && !s.healthy(last):
		return s.afterwards(silenced, dwell/10) // what is rejected is not probed
	case !accepted && (s.reported(first) && s.reported(last)):
		return s.afterwards(blinded, dwell)
	case !accepted:
		return s.afterwards(silenced, dwell)
	}
	return s.afterwards(fine, dwell)
}

// dwell is how long an Envoy must live with a specifier: several probes.
const dwell = 400 * time.Millisecond

func (s *subject) afterwards(e effect, wait time.Duration) effect {
	select {
	case <-s.Exited():
		return killed
	case <-time.After(wait):
		return e
	}
}

func (s *subject) hdsErrors(t testing.TB) uint64 {
	t.Helper()
	body, err := s.Get("/stats?format=text&filter=^hds_delegate.errors$")
	if err != nil {
		return 0 // it has died, which others see
	}
	var n uint64
	_, _ = fmt.Sscanf(string(body), "hds_delegate.errors: %d", &n)
	return n
}

func (s *subject) entry(cluster string) (corev3.HealthStatus, bool) {
	for _, c := range s.report.Load().GetClusterEndpointsHealth() {
		if c.GetClusterName() == cluster {
			for _, l := range c.GetLocalityEndpointsHealth() {
				for _, e := range l.GetEndpointsHealth() {
					return e.GetHealthStatus(), true
				}
			}
		}
	}
	return 0, false
}

func (s *subject) reported(cluster string) bool { _, ok := s.entry(cluster); return ok }

func (s *subject) healthy(cluster string) bool {
	status, _ := s.entry(cluster)
	return status == corev3.HealthStatus_HEALTHY
}

// good is a cluster that every Envoy checks and finds healthy.
func (l *lab) good(name string) *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{
		ClusterName: name, HealthChecks: []*corev3.HealthCheck{sane(&corev3.HealthCheck{})},
		LocalityEndpoints: []*healthv3.LocalityEndpoints{{Locality: &corev3.Locality{Zone: "a"}, Endpoints: []*endpointv3.Endpoint{l.upstream}}},
	}
}

// sane fills in what every health check needs; HTTP where it has no kind.
func sane(check *corev3.HealthCheck) *corev3.HealthCheck {
	check.Timeout = durationpb.New(time.Second)
	check.Interval = durationpb.New(50 * time.Millisecond)
	check.NoTrafficInterval, check.NoTrafficHealthyInterval = check.Interval, check.Interval
	check.UnhealthyThreshold, check.HealthyThreshold = wrapperspb.UInt32(1), wrapperspb.UInt32(1)
	if check.HealthChecker == nil {
		check.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/"}}
	}
	return check
}
