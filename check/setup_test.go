package check

import (
	"context"
	"net/netip"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// httpHealthCheck returns a check that probes often; edit changes it.
func httpHealthCheck(edit ...func(*corev3.HealthCheck, *corev3.HealthCheck_HttpHealthCheck)) *corev3.HealthCheck {
	h := &corev3.HealthCheck_HttpHealthCheck{Path: "/healthy"}
	c := timing()
	c.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: h}
	for _, e := range edit {
		e(c, h)
	}
	return c
}

func tcpHealthCheck(edit ...func(*corev3.HealthCheck, *corev3.HealthCheck_TcpHealthCheck)) *corev3.HealthCheck {
	h := &corev3.HealthCheck_TcpHealthCheck{}
	c := timing()
	c.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: h}
	for _, e := range edit {
		e(c, h)
	}
	return c
}

func timing() *corev3.HealthCheck {
	return &corev3.HealthCheck{
		Timeout:            durationpb.New(10 * time.Second),
		Interval:           durationpb.New(time.Second),
		NoTrafficInterval:  durationpb.New(5 * time.Millisecond),
		UnhealthyThreshold: wrapperspb.UInt32(1),
		HealthyThreshold:   wrapperspb.UInt32(1),
	}
}

func text(hexadecimal string) *corev3.HealthCheck_Payload {
	return &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: hexadecimal}}
}

func payload(s string) *corev3.HealthCheck_Payload {
	return &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Binary{Binary: []byte(s)}}
}

// endpoint returns the endpoint at ip:port or at a pipe's path.
func endpoint(address string) *endpointv3.Endpoint {
	a := &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: address}}}
	if at, err := netip.ParseAddrPort(address); err == nil {
		a.Address = &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address:       at.Addr().String(),
			PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
		}}
	}
	return &endpointv3.Endpoint{Address: a}
}

func group(zone string, endpoints ...*endpointv3.Endpoint) *healthv3.LocalityEndpoints {
	return &healthv3.LocalityEndpoints{Locality: &corev3.Locality{Zone: zone}, Endpoints: endpoints}
}

func clusterOf(name string, checks []*corev3.HealthCheck, groups ...*healthv3.LocalityEndpoints) *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{ClusterName: name, HealthChecks: checks, LocalityEndpoints: groups}
}

func specifierOf(clusters ...*healthv3.ClusterHealthCheck) *healthv3.HealthCheckSpecifier {
	return &healthv3.HealthCheckSpecifier{
		Interval: durationpb.New(5 * time.Millisecond), ClusterHealthChecks: clusters,
	}
}

func one(check *corev3.HealthCheck, endpoints ...*endpointv3.Endpoint) *healthv3.HealthCheckSpecifier {
	return specifierOf(clusterOf("web", []*corev3.HealthCheck{check}, group("a", endpoints...)))
}

func startPool(t testing.TB) *pool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := newPool(ctx, nil, defaultMaxDials)
	t.Cleanup(func() { cancel(); p.close() })
	return p
}

func apply(t testing.TB, p *pool, m *healthv3.HealthCheckSpecifier) {
	t.Helper()
	s, err := parseSpecifier(proto.Clone(m).(*healthv3.HealthCheckSpecifier))
	if err != nil {
		t.Fatal(err)
	}
	p.apply(s)
}

func startUpstream(t testing.TB, options upstream.Options) *upstream.Server {
	t.Helper()
	s, err := upstream.Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// seen is what a report says of one endpoint.
type seen struct {
	status health.Status
	code   uint16
}

// all returns what a report would say now.
func (p *pool) all() (list []seen) {
	for _, c := range p.clusters {
		for _, l := range c.localities {
			for _, h := range l.hosts {
				status, code := h.view()
				list = append(list, seen{status, code})
			}
		}
	}
	return list
}

// waitFor waits until the only endpoint is seen so.
func waitFor(t testing.TB, p *pool, want seen) {
	t.Helper()
	eventually(t, func() (any, bool) {
		got := p.all()
		return got, len(got) == 1 && got[0] == want
	})
}

// eventually waits for a condition that nothing signals.
func eventually(t testing.TB, condition func() (any, bool)) {
	t.Helper()
	var got any
	if !envoy.Await(time.Minute, func() (ok bool) { got, ok = condition(); return ok }) {
		t.Fatalf("it did not come to pass; last seen: %v", got)
	}
}

func waitProbes(t testing.TB, u *upstream.Server, n uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := u.WaitProbes(ctx, n); err != nil {
		t.Fatalf("waiting for %d probes, %+v so far: %v", n, u.Stats(), err)
	}
}

func codeMetadata(code float64) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{statusKey: structpb.NewNumberValue(code)}}
}
