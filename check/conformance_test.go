package check

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// subject is a cluster that both checkers check, and the reports that are
// expected of both in each phase.
type subject struct {
	name     string
	protocol upstream.Protocol
	address  string // of the upstream; empty for any
	checks   []*corev3.HealthCheck
	edit     func(*endpointv3.Endpoint)
	want     string // by phase, as "H200 U503 T0"; without a code, any will do
}

// phases are what all upstreams do, one after the other.
var phases = []struct {
	name      string
	behaviour upstream.Behaviour
}{
	{"healthy", upstream.Healthy()},
	{"503", upstream.Status(503)},
	{"hang", upstream.Hang()},
	{"refuse", upstream.Refuse()},
	{"slow", upstream.Slow(600 * time.Millisecond)},
	{"garbage", upstream.Garbage()},
	{"closes after each answer", answers(200, func(b *upstream.Behaviour) { b.Close = true })},
	{"reset", upstream.Reset()},
	{"degraded", answers(200, func(b *upstream.Behaviour) { b.Header.Set("X-Envoy-Degraded", "1") })},
	{"a body", answers(200, func(b *upstream.Behaviour) { b.Body = "one two three" })},
	{"too many headers", upstream.Raw([]byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("x: y\r\n", 150) + "\r\n"))},
	{"chunked", chunked("5\r\nhello\r\n0\r\n\r\n")},
	{"HTTP/1.0 until closed", upstream.Raw([]byte("HTTP/1.0 200 OK\r\n\r\nhello"))},
	{"interim first", upstream.Raw([]byte("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))},
	{"not modified", upstream.Status(http.StatusNotModified)},
	{"announces closing", answers(200, func(b *upstream.Behaviour) { b.Header.Set("Connection", "close") })},
}

const (
	asPlain = "H200 U503 T0 U0 T0 U0 H200 U0 U200 H200 U0 H200 H200 H200 U304 H200"
	asBoth  = "U200 U503 T0 U0 T U0 U200 U0 U200 U200 U0 U200 U200 U200 U304 U200" // slow: TIMEOUT wins
	as503   = "U200 H503 T0 U0 T0 U0 U200 U0 U200 U200 U0 U200 U200 U200 U304 U200"
)

func quick(c *base) {
	c.Timeout = durationpb.New(300 * time.Millisecond)
	c.NoTrafficInterval = durationpb.New(50 * time.Millisecond)
	c.UnhealthyThreshold, c.HealthyThreshold = wrapperspb.UInt32(2), wrapperspb.UInt32(2)
}

func overHTTP(edit ...editHTTP) *corev3.HealthCheck {
	return httpHealthCheck(append([]editHTTP{func(c *base, _ *httpProbe) { quick(c) }}, edit...)...)
}

func overTCP(edit ...func(*base, *tcpProbe)) *corev3.HealthCheck {
	return tcpHealthCheck(append([]func(*base, *tcpProbe){func(c *base, _ *tcpProbe) { quick(c) }}, edit...)...)
}

// patient outlasts the slow phase.
func patient(c *base, _ *httpProbe) {
	c.Timeout, c.UnhealthyThreshold = durationpb.New(1200*time.Millisecond), wrapperspb.UInt32(1)
}

func retrying(c *base, h *httpProbe) {
	c.UnhealthyThreshold = wrapperspb.UInt32(1 << 30)
	h.RetriableStatuses = []*typev3.Int64Range{{Start: 500, End: 600}}
}

func subjects(t *testing.T) []subject {
	one := func(c *corev3.HealthCheck) []*corev3.HealthCheck { return []*corev3.HealthCheck{c} }
	fresh := func(c *base, _ *httpProbe) { c.ReuseConnection = wrapperspb.Bool(false) }
	post := func(_ *base, h *httpProbe) { h.Method, h.Send = corev3.RequestMethod_POST, text("6f6e65") }
	head := func(_ *base, h *httpProbe) { h.Method = corev3.RequestMethod_HEAD }
	return []subject{
		{name: "plain", checks: one(overHTTP()), want: asPlain},
		{name: "fresh", checks: one(overHTTP(fresh)), want: asPlain},
		{name: "expects-503", checks: one(overHTTP(expecting(503, 504))), want: as503},
		{
			name: "retriable", checks: one(overHTTP(retrying)),
			want: "H200 H503 H0 H0 H0 H0 H200 H0 U200 H200 H0 H200 H200 H200 U304 H200",
		},
		{
			name: "receive", checks: one(overHTTP(receiving(payload("one"), payload("three")))),
			want: "U200 U503 T0 U0 T0 U0 U200 U0 U200 H200 U0 U200 U200 U200 U304 U200",
		},
		{name: "post", checks: one(overHTTP(post)), want: asPlain},
		{name: "head", checks: one(overHTTP(head)), want: asPlain},
		{name: "ipv6", address: "[::1]:0", checks: one(overHTTP()), want: asPlain},
		{name: "pipe", address: t.TempDir() + "/p", checks: one(overHTTP()), want: asPlain},
		{name: "port", checks: one(overHTTP()), edit: otherPort, want: asPlain},
		{name: "both-statuses", checks: []*corev3.HealthCheck{overHTTP(), overHTTP(expecting(200, 600))}, want: asPlain},
		{
			name: "timeout-then-status", checks: []*corev3.HealthCheck{overHTTP(), overHTTP(patient, expecting(503, 504))},
			want: asBoth,
		},
		{
			name: "status-then-timeout", checks: []*corev3.HealthCheck{overHTTP(patient, expecting(503, 504)), overHTTP()},
			want: asBoth,
		},
		{name: "http-and-connect", checks: []*corev3.HealthCheck{overHTTP(), overTCP()}, want: asPlain},
		{name: "none", want: "U0 U0 U0 U0 U0 U0 U0 U0 U0 U0 U0 U0 U0 U0 U0 U0"},
		{
			name: "tcp", protocol: upstream.TCP, checks: one(overTCP()),
			want: "H0 H0 H0 U0 H0 H0 H0 H0 H0 H0 H0 H0 H0 H0 H0 H0",
		},
		{
			// An upstream that closes a reused connection has failed.
			name: "tcp-text", protocol: upstream.TCP, checks: one(overTCP(exchange("70696e67", text("70696e67")))),
			want: "H0 H0 T0 U0 T0 U0 U0 U0 H0 H0 U0 U0 U0 U0 H0 H0",
		},
		{
			name: "tcp-fresh", protocol: upstream.TCP, checks: one(overTCP(exchange("70", text("70")), func(c *base, _ *tcpProbe) {
				c.ReuseConnection = wrapperspb.Bool(false)
			})),
			want: "H0 H0 T0 U0 T0 U0 H0 U0 H0 H0 U0 U0 U0 U0 H0 H0",
		},
	}
}

// otherPort makes a checker probe an endpoint at its address and report another.
func otherPort(e *endpointv3.Endpoint) {
	s := e.GetAddress().GetSocketAddress()
	e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: s.GetPortValue()}
	s.PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: 9}
}

// TestAsEnvoy gives a real Envoy and this checker the same specifier and the
// same upstreams, and compares what they report.
func TestAsEnvoy(t *testing.T) {
	list := subjects(t)
	m, upstreams := present(t, list)
	theirs, ours := startPair(t, m)
	for i, phase := range phases {
		for _, u := range upstreams {
			if err := u.Set(phase.behaviour); err != nil {
				t.Fatal(err)
			}
		}
		for who, r := range map[string]*reports{"Envoy": theirs, "ours": ours} {
			if wrong := r.settle(list, i); len(wrong) > 0 {
				t.Errorf("%s, %s: %v", phase.name, who, wrong)
			}
		}
		if a, b := theirs.get(), ours.get(); i == 0 && !proto.Equal(a, b) {
			t.Errorf("Envoy reports %v\nwe report %v", a, b)
		}
	}
}

// present returns the specifier for all subjects, and an upstream for each.
func present(t *testing.T, list []subject) (*healthv3.HealthCheckSpecifier, []*upstream.Server) {
	m := &healthv3.HealthCheckSpecifier{Interval: durationpb.New(50 * time.Millisecond)}
	var upstreams []*upstream.Server
	for _, s := range list {
		u := startUpstream(t, upstream.Options{Protocol: s.protocol, Address: s.address})
		upstreams = append(upstreams, u)
		e := endpoint(u.Addr())
		if s.edit != nil {
			s.edit(e)
		}
		m.ClusterHealthChecks = append(m.ClusterHealthChecks, clusterOf(s.name, s.checks, group("a", e)))
	}
	// Only the shape of the report counts for these.
	disabled, twice := endpoint("127.0.0.1:9"), endpoint("127.0.0.1:8")
	disabled.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	m.ClusterHealthChecks = append(m.ClusterHealthChecks,
		clusterOf("disabled", nil, group("a", endpoint("127.0.0.1:8"), disabled)),
		clusterOf("twice", nil, group("b", twice, twice), group("a", twice)),
		clusterOf("plain", nil, group("a", twice)))
	return m, upstreams
}

// reports keeps the latest report of a checker.
type reports struct {
	mu     sync.Mutex
	latest *request
	count  int
}

func (r *reports) put(latest *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = latest
	r.count++
}

func (r *reports) get() *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// settling is how long a busy machine may take to report as wanted.
const settling = 2 * time.Minute

// settle waits until five reports in a row are as wanted, and tells what is
// not when that does not happen.
func (r *reports) settle(list []subject, phase int) (wrong []string) {
	from, last := -1, -1
	envoy.Await(settling, func() bool {
		r.mu.Lock()
		latest, count := r.latest, r.count
		r.mu.Unlock()
		if count == last {
			return false
		}
		last, wrong = count, differences(list, latest, phase)
		if len(wrong) > 0 {
			from = -1
		} else if from < 0 {
			from = count
		}
		return from >= 0 && count-from >= 4
	})
	return wrong
}

func differences(list []subject, r *request, phase int) (wrong []string) {
	clusters := r.GetEndpointHealthResponse().GetClusterEndpointsHealth()
	if len(clusters) < len(list) {
		return []string{"no report yet"}
	}
	for i, s := range list {
		got, want := brief(clusters[i]), strings.Fields(s.want)[phase]
		if got != want && !(len(want) == 1 && strings.HasPrefix(got, want)) {
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", s.name, got, want))
		}
	}
	return wrong
}

// brief is the status's first letter and the HTTP status, 0 for none.
func brief(c *healthv3.ClusterEndpointsHealth) string {
	return briefOf(c.GetLocalityEndpointsHealth()[0].GetEndpointsHealth()[0])
}

func briefOf(e *healthv3.EndpointHealth) string {
	code := e.GetHealthMetadata().GetFields()[statusKey].GetNumberValue()
	return fmt.Sprintf("%s%v", e.GetHealthStatus().String()[:1], code)
}

// startPair starts an Envoy and a checker of ours, which follow one specifier.
func startPair(t *testing.T, m *healthv3.HealthCheckSpecifier) (theirs, ours *reports) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { Run(ctx, Options{Server: l.Addr().String(), NodeID: "ours", Log: zerolog.Nop()}) })
	t.Cleanup(func() { cancel(); work.Wait() })
	envoy.StartChecker(t, envoy.Checker{ID: "theirs", HDS: l.Addr().String()})
	theirs, ours = &reports{}, &reports{}
	work.Go(func() {
		for {
			select {
			case s := <-c.streams: // another one where the machine is too busy for the first
				work.Go(func() { collect(s, m, theirs, ours) })
			case <-ctx.Done():
				return
			}
		}
	})
	return theirs, ours
}

// collect keeps what one of the two reports on a stream.
func collect(s *serverStream, m *healthv3.HealthCheckSpecifier, theirs, ours *reports) {
	first, err := s.Recv()
	if err != nil || s.Send(m) != nil {
		return
	}
	to := ours
	if first.GetHealthCheckRequest().GetNode().GetId() == "theirs" {
		to = theirs
	}
	for {
		r, err := s.Recv()
		if err != nil {
			return
		}
		to.put(r)
	}
}
