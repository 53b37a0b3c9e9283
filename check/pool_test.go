package check

import (
	"bytes"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/upstream"
)

func rarely(c *base, _ *httpProbe) { c.NoTrafficInterval = durationpb.New(time.Hour) }

func TestUnhealthyUntilProbed(t *testing.T) {
	u := startUpstream(t, upstream.Options{Behaviour: upstream.Hang()})
	p := startPool(t)
	apply(t, p, one(httpHealthCheck(), endpoint(u.Addr())))
	waitProbes(t, u, 1)
	if got := p.all(); got[0] != (seen{down, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestNoChecksIsUnhealthy(t *testing.T) {
	p := startPool(t)
	apply(t, p, specifierOf(clusterOf("web", nil, group("a", endpoint("127.0.0.1:1")))))
	if got := p.all(); len(got) != 1 || got[0] != (seen{down, 0}) {
		t.Errorf("got %v", got)
	}
}

// What stays the same keeps its state, although a probe is due in an hour only.
func TestKeepsState(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	e, other := endpoint(u.Addr()), endpoint("127.0.0.1:1")
	check := []*corev3.HealthCheck{httpHealthCheck(rarely)}
	p := startPool(t)
	apply(t, p, one(check[0], e))
	waitFor(t, p, seen{up, 200})
	before := u.Stats().Probes
	for name, m := range map[string]*healthv3.HealthCheckSpecifier{
		"another endpoint first": specifierOf(clusterOf("web", check, group("a", other, e))),
		"another locality first": specifierOf(clusterOf("web", check, group("0", other), group("a", e))),
		"another cluster first":  specifierOf(clusterOf("db", check, group("a", other)), clusterOf("web", check, group("a", e))),
	} {
		apply(t, p, m)
		got := p.all()
		if len(got) != 2 || got[1] != (seen{up, 200}) || got[0].status != down {
			t.Errorf("%s: %v", name, got)
		}
	}
	apply(t, p, specifierOf(clusterOf("web", check, group("a", e, e))))
	if got := p.all(); len(got) != 2 || got[0] != got[1] || got[0] != (seen{up, 200}) {
		t.Errorf("given twice: %v", got)
	}
	if after := u.Stats().Probes; after != before {
		t.Errorf("%d probes more", after-before)
	}
}

func TestNewHosts(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	check := []*corev3.HealthCheck{httpHealthCheck(rarely)}
	moved := endpoint(u.Addr())
	moved.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{Hostname: "x"}
	bound := clusterOf("web", check, group("a", endpoint(u.Addr())))
	bound.UpstreamBindConfig = &corev3.BindConfig{SourceAddress: &corev3.SocketAddress{
		Address: "127.0.0.3", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 0},
	}}
	for name, m := range map[string]*healthv3.HealthCheckSpecifier{
		"another locality":            specifierOf(clusterOf("web", check, group("b", endpoint(u.Addr())))),
		"another health_check_config": specifierOf(clusterOf("web", check, group("a", moved))),
		"another cluster name":        specifierOf(clusterOf("web2", check, group("a", endpoint(u.Addr())))),
		"another source address":      specifierOf(bound),
	} {
		t.Run(name, func(t *testing.T) {
			u.Set(upstream.Healthy())
			p := startPool(t)
			apply(t, p, specifierOf(clusterOf("web", check, group("a", endpoint(u.Addr())))))
			waitFor(t, p, seen{up, 200})
			u.Set(upstream.Hang())
			apply(t, p, m)
			if got := p.all(); got[0] != (seen{down, 0}) {
				t.Errorf("got %v", got)
			}
			u.Set(upstream.Healthy())
		})
	}
}

func TestBindsSourceAddress(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	c := clusterOf("web", []*corev3.HealthCheck{httpHealthCheck()}, group("a", endpoint(u.Addr())))
	c.UpstreamBindConfig = &corev3.BindConfig{SourceAddress: &corev3.SocketAddress{
		Address: "127.0.0.3", PortSpecifier: &corev3.SocketAddress_PortValue{},
	}}
	p := startPool(t)
	apply(t, p, specifierOf(c))
	waitFor(t, p, seen{up, 200})
}

// A changed check goes on from the health that the host has.
func TestChangedCheckKeepsHost(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	p := startPool(t)
	apply(t, p, one(httpHealthCheck(rarely), endpoint(u.Addr())))
	waitFor(t, p, seen{up, 200})
	u.Set(upstream.Hang())
	apply(t, p, one(httpHealthCheck(rarely, func(c *base, h *httpProbe) { h.Path = "/other" }), endpoint(u.Addr())))
	waitProbes(t, u, 2)
	if got := p.all()[0]; got != (seen{up, 200}) || u.Last().Path != "/other" {
		t.Errorf("got %v, path %s", got, u.Last().Path)
	}
}

func TestSeveralChecks(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	e := endpoint(u.Addr())
	p := startPool(t)
	apply(t, p, specifierOf(clusterOf("web", []*corev3.HealthCheck{
		httpHealthCheck(), httpHealthCheck(expecting(500, 501)), tcpHealthCheck(),
	}, group("a", e))))
	waitProbes(t, u, 6)
	if got := p.all()[0]; got != (seen{down, 200}) {
		t.Errorf("one of three fails: %v", got)
	}
	apply(t, p, specifierOf(clusterOf("web", []*corev3.HealthCheck{httpHealthCheck(), tcpHealthCheck()}, group("a", e))))
	waitFor(t, p, seen{up, 200})
}

func TestRemovedStopsAtOnce(t *testing.T) {
	u := startUpstream(t, upstream.Options{Behaviour: upstream.Hang()})
	p := startPool(t)
	apply(t, p, one(httpHealthCheck(), endpoint(u.Addr())))
	waitProbes(t, u, 1)
	apply(t, p, specifierOf())
	p.work.Wait() // would take the timeout of ten seconds
	if got := p.all(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestReport(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	check := []*corev3.HealthCheck{httpHealthCheck(rarely)}
	disabled := endpoint("127.0.0.1:2")
	disabled.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	p := startPool(t)
	apply(t, p, specifierOf(
		clusterOf("web", check, group("b", endpoint(u.Addr()), disabled), group("a", endpoint("[::1]:1"))),
		clusterOf("web", check, group("x", endpoint("127.0.0.1:9"))), // a second one of the name
		clusterOf("db", nil, group("", endpoint("/pipe"))),
	))
	eventually(t, func() (any, bool) { return p.all(), p.all()[0] == (seen{up, 200}) })
	want := &healthv3.EndpointHealthResponse{}
	first := &healthv3.EndpointHealth{Endpoint: endpoint(u.Addr()), HealthStatus: corev3.HealthStatus_HEALTHY, HealthMetadata: codeMetadata(200)}
	second := &healthv3.EndpointHealth{Endpoint: endpoint("[::1]:1"), HealthStatus: corev3.HealthStatus_UNHEALTHY}
	third := &healthv3.EndpointHealth{Endpoint: endpoint("/pipe"), HealthStatus: corev3.HealthStatus_UNHEALTHY}
	want.EndpointsHealth = []*healthv3.EndpointHealth{first, second, third}
	want.ClusterEndpointsHealth = []*healthv3.ClusterEndpointsHealth{
		{ClusterName: "web", LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{
			{Locality: &corev3.Locality{Zone: "b"}, EndpointsHealth: []*healthv3.EndpointHealth{first}},
			{Locality: &corev3.Locality{Zone: "a"}, EndpointsHealth: []*healthv3.EndpointHealth{second}},
		}},
		{ClusterName: "db", LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{
			{Locality: &corev3.Locality{}, EndpointsHealth: []*healthv3.EndpointHealth{third}},
		}},
	}
	report := p.report()
	if got := report.GetEndpointHealthResponse(); !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	a, _ := proto.Marshal(report)
	for range 20 {
		if b, err := proto.Marshal(p.report()); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("not byte-stable: %v", err)
		}
	}
}

// What is left out of reports as told is all that is missing.
func TestReportsLeaveOut(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	p := startPool(t)
	apply(t, p, one(httpHealthCheck(rarely), endpoint(u.Addr())))
	waitFor(t, p, seen{up, 200})
	for _, left := range []Reports{{}, {Flat: true}, {WithoutCodes: true}, {Flat: true, WithoutCodes: true}} {
		p.reports = left
		r := p.report().GetEndpointHealthResponse()
		e := r.GetEndpointsHealth()
		if len(e) != 1 || e[0].GetHealthStatus() != corev3.HealthStatus_HEALTHY || (len(r.GetClusterEndpointsHealth()) == 0) != left.Flat || (e[0].GetHealthMetadata() == nil) != left.WithoutCodes {
			t.Errorf("%+v: %v", left, r)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	p := startPool(t)
	if r := p.report(); r.GetRequestType() != nil {
		t.Errorf("got %v", r)
	}
}

// A prober that waits to dial must not hold up those with a connection, and fails
// nobody.
func TestFewDials(t *testing.T) {
	p := startPool(t)
	p.net.places = make(chan struct{}, 1)
	var endpoints []*endpointv3.Endpoint
	for range 10 {
		endpoints = append(endpoints, endpoint(startUpstream(t, upstream.Options{}).Addr()))
	}
	apply(t, p, one(httpHealthCheck(func(c *base, _ *httpProbe) { c.ReuseConnection = wrapperspb.Bool(false) }), endpoints...))
	eventually(t, func() (any, bool) {
		for _, s := range p.all() {
			if s.status != up {
				return p.all(), false
			}
		}
		return nil, true
	})
}
