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
)

// patience is how long an Envoy may take for anything on a busy machine.
const patience = 30 * time.Second

// lab is an HDS server that sends what it is given, and upstreams whose every probe passes.
type lab struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
	address string
	bench   Bench // its servers answer 200
	serial  atomic.Uint64

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
	l.bench = Bench{Plain: endpointOf(upstream(t, nil)), Secure: endpointOf(upstream(t, serverTLS())), File: filepath.Join(t.TempDir(), "ca.pem")}
	if err := os.WriteFile(l.bench.File, []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) }) // ends by Stop
	t.Cleanup(func() { server.Stop(); wg.Wait() })
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

// subject starts one.
func (l *lab) subject(t testing.TB, version string) *subject {
	t.Helper()
	id := fmt.Sprintf("subject-%d", l.serial.Add(1))
	s := &subject{Process: StartChecker(t, Checker{ID: id, HDS: l.address, Version: version}), lab: l}
	Eventually(t, patience, "the Envoy to connect", func() bool {
		s.session = l.session(id)
		return s.session != nil
	})
	return s
}

// rejects is the problem with what an Envoy rejects, in whole or in part.
const rejects = "the Envoy rejects it"

// try sends clusters between two good ones, and tells what is wrong within the time of several
// probes; nothing if the Envoy takes them, lives and finds the good ones healthy.
func (s *subject) try(t testing.TB, clusters []*healthv3.ClusterHealthCheck) (problem string) {
	t.Helper()
	n := s.lab.serial.Add(1)
	first, last := fmt.Sprintf("good-%d-first", n), fmt.Sprintf("good-%d-last", n)
	spec := &healthv3.HealthCheckSpecifier{Interval: durationpb.New(20 * time.Millisecond)}
	spec.ClusterHealthChecks = append(spec.ClusterHealthChecks, s.lab.good(first))
	spec.ClusterHealthChecks = append(spec.ClusterHealthChecks, clusters...)
	spec.ClusterHealthChecks = append(spec.ClusterHealthChecks, s.lab.good(last))
	before := s.hdsErrors(t)
	s.out <- spec
	rejected := func() bool { return s.hdsErrors(t) > before }
	if !Await(patience, func() bool { return !s.Alive() || rejected() || s.healthy(first) && s.healthy(last) }) {
		problem = "the good clusters are not found healthy"
	}
	reports := s.count.Load()
	if rejected() {
		problem, reports = rejects, 0
	}
	Await(patience, func() bool { return !s.Alive() || reports == 0 || s.count.Load() > reports+dwell })
	switch {
	case !s.Alive():
		return "the Envoy ends"
	case problem == "" && !(s.healthy(first) && s.healthy(last)):
		return "the good clusters are found healthy no more"
	}
	return problem
}

// dwell is how many reports an Envoy must live with a specifier: several probes.
const dwell = 20

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

// entry is the status of a cluster's first endpoint in the latest report.
func (s *subject) entry(cluster string) corev3.HealthStatus {
	for _, c := range s.report.Load().GetClusterEndpointsHealth() {
		if c.GetClusterName() == cluster {
			for _, l := range c.GetLocalityEndpointsHealth() {
				for _, e := range l.GetEndpointsHealth() {
					return e.GetHealthStatus()
				}
			}
		}
	}
	return corev3.HealthStatus_UNKNOWN
}

func (s *subject) healthy(cluster string) bool {
	return s.entry(cluster) == corev3.HealthStatus_HEALTHY
}

// good is a cluster that every Envoy checks and finds healthy.
func (l *lab) good(name string) *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{
		ClusterName: name, HealthChecks: []*corev3.HealthCheck{SoundCheck()},
		LocalityEndpoints: []*healthv3.LocalityEndpoints{{Locality: &corev3.Locality{Zone: "a"}, Endpoints: []*endpointv3.Endpoint{l.bench.Plain}}},
	}
}
