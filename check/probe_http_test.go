package check

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/upstream"
)

type (
	base      = corev3.HealthCheck
	httpProbe = corev3.HealthCheck_HttpHealthCheck
	editHTTP  = func(*base, *httpProbe)
)

func within100ms(c *base, _ *httpProbe) { c.Timeout = durationpb.New(100 * time.Millisecond) }

func answers(status int, edit func(*upstream.Behaviour)) upstream.Behaviour {
	b := upstream.Status(status)
	b.Header = http.Header{}
	edit(&b)
	return b
}

var httpTable = []struct {
	name      string
	behaviour upstream.Behaviour
	edit      editHTTP
	want      seen
}{
	{"200", upstream.Healthy(), nil, seen{up, 200}},
	{"503", upstream.Status(503), nil, seen{down, 503}},
	{"an unexpected success", upstream.Status(204), nil, seen{down, 204}},
	{"expected statuses, start included", upstream.Status(204), expecting(204, 206), seen{up, 204}},
	{"expected statuses, end not included", upstream.Status(206), expecting(204, 206), seen{down, 206}},
	{"expected statuses instead of 200", upstream.Healthy(), expecting(204, 206), seen{down, 200}},
	{"refused", upstream.Refuse(), nil, seen{down, 0}},
	{"hangs", upstream.Hang(), within100ms, seen{timeout, 0}},
	{"slow, but in time", upstream.Slow(10 * time.Millisecond), nil, seen{up, 200}},
	{"too slow", upstream.Slow(20 * time.Second), within100ms, seen{timeout, 0}},
	{"garbage", upstream.Garbage(), nil, seen{down, 0}},
	{"reset", upstream.Reset(), nil, seen{down, 0}},
	{"HEAD", upstream.Healthy(), func(_ *base, h *httpProbe) { h.Method = corev3.RequestMethod_HEAD }, seen{up, 200}},
	{"chunked", chunked("5\r\nhello\r\n0\r\n\r\n"), nil, seen{up, 200}},
	{"chunks break off", chunked("5\r\nhel"), nil, seen{down, 0}},
	{"body until the end of the connection", upstream.Raw([]byte("HTTP/1.1 200 OK\r\n\r\nhello")), nil, seen{up, 200}},
	{"HTTP/1.0", upstream.Raw([]byte("HTTP/1.0 200 OK\r\n\r\n")), nil, seen{up, 200}},
	{"not HTTP/1", upstream.Raw([]byte("HTTP/2.0 200 OK\r\n\r\n")), nil, seen{down, 0}},
	{"body breaks off", upstream.Raw([]byte("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")), nil, seen{down, 0}},
	{"interim answers first", upstream.Raw([]byte("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")), nil, seen{up, 200}},
	{"interim answers for ever", upstream.Raw([]byte(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 10_000))), nil, seen{down, 0}},
	{"a huge header", upstream.Raw([]byte("HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", maxHeader) + "\r\n\r\n")), nil, seen{down, 0}},
	{"too many headers", upstream.Raw([]byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("x: y\r\n", maxHeaders+1) + "\r\n")), nil, seen{down, 0}},
	{"a huge body", answers(200, func(b *upstream.Behaviour) { b.Body = strings.Repeat("y", maxBody+1) }), nil, seen{down, 0}},
	{"a large body", answers(200, func(b *upstream.Behaviour) { b.Body = strings.Repeat("y", maxBody/4) }), nil, seen{up, 200}},
	{"closes after each answer", answers(200, func(b *upstream.Behaviour) { b.Close = true }), nil, seen{up, 200}},
	{"degraded", answers(200, func(b *upstream.Behaviour) { b.Header.Set("X-Envoy-Degraded", "") }), nil, seen{down, 200}},
	{"asks to fail at once", answers(200, func(b *upstream.Behaviour) { b.Header.Set("X-Envoy-Immediate-Health-Check-Fail", "true") }), nil, seen{up, 200}},
	{"receives", answers(200, func(b *upstream.Behaviour) { b.Body = "one two three" }), receiving(payload("one"), text("7468726565")), seen{up, 200}},
	{"receives in another order", answers(200, func(b *upstream.Behaviour) { b.Body = "three two one" }), receiving(payload("one"), payload("three")), seen{down, 200}},
	{"receives too late in the body", answers(200, func(b *upstream.Behaviour) { b.Body = strings.Repeat(" ", 1024) + "one" }), receiving(payload("one")), seen{down, 200}},
	{"of the service", serves("web-1"), ofService("web"), seen{up, 200}},
	{"of another service", serves("db-1"), ofService("web"), seen{down, 200}},
	{"of no service", upstream.Healthy(), ofService("web"), seen{down, 200}},
}

func expecting(start, end int64) editHTTP {
	return func(_ *base, h *httpProbe) {
		h.ExpectedStatuses = []*typev3.Int64Range{{Start: start, End: end}}
	}
}

func receiving(payloads ...*corev3.HealthCheck_Payload) editHTTP {
	return func(_ *base, h *httpProbe) { h.Receive = payloads }
}

func ofService(prefix string) editHTTP {
	return func(_ *base, h *httpProbe) {
		h.ServiceNameMatcher = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}}
	}
}

func serves(service string) upstream.Behaviour {
	return answers(200, func(b *upstream.Behaviour) { b.Header.Set("X-Envoy-Upstream-Healthchecked-Cluster", service) })
}

func chunked(body string) upstream.Behaviour {
	return upstream.Raw([]byte("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body))
}

// Each is probed twice: from the start (where a pass would show at once), and
// after it was healthy and failed, so that what was seen is not the start.
func TestProbeHTTP(t *testing.T) {
	for _, test := range httpTable {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			first := upstream.Status(599)
			u := startUpstream(t, upstream.Options{Behaviour: first})
			p := startPool(t)
			edit := []editHTTP{}
			if test.edit != nil {
				edit = append(edit, test.edit)
			}
			apply(t, p, one(httpHealthCheck(edit...), endpoint(u.Addr())))
			waitFor(t, p, seen{down, 599})
			if err := u.Set(test.behaviour); err != nil {
				t.Fatal(err)
			}
			waitFor(t, p, test.want)
		})
	}
}

func TestRetriableStatus(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	p := startPool(t)
	apply(t, p, one(httpHealthCheck(func(c *base, h *httpProbe) {
		c.UnhealthyThreshold = wrapperspb.UInt32(1 << 30)
		h.RetriableStatuses = []*typev3.Int64Range{{Start: 500, End: 600}}
	}), endpoint(u.Addr())))
	waitFor(t, p, seen{up, 200})
	u.Set(upstream.Status(503))
	waitFor(t, p, seen{up, 503}) // the code is early evidence
	u.Set(upstream.Status(404))
	waitFor(t, p, seen{down, 404})
}

func TestRequest(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	p := startPool(t)
	e := endpoint(u.Addr())
	e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{Hostname: "one.example"}
	apply(t, p, one(httpHealthCheck(func(_ *base, h *httpProbe) {
		h.Method = corev3.RequestMethod_POST
		h.Host = "all.example"
		h.Path = "/check?full=1"
		h.Send = text("70696e67")
		h.RequestHeadersToAdd = []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "X-From", Value: "100%% hdsd"}},
			{Header: &corev3.HeaderValue{Key: "user-agent", Value: "probe"}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		}
	}), e))
	waitFor(t, p, seen{up, 200})
	got := u.Last()
	want := upstream.Request{Method: "POST", Path: "/check?full=1", Host: "one.example", Body: "ping"}
	if got.Method != want.Method || got.Path != want.Path || got.Host != want.Host || got.Body != want.Body {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Header.Get("X-From") != "100% hdsd" || got.Header.Get("User-Agent") != "probe" {
		t.Errorf("headers %v", got.Header)
	}
}

func TestHostHeader(t *testing.T) {
	for _, test := range []struct{ check, endpoint, want string }{
		{"", "", "web"}, {"check.example", "", "check.example"}, {"check.example", "one.example", "one.example"},
	} {
		h, err := newHTTPCheck(&httpProbe{Path: "/", Host: test.check}, "web")
		if err != nil {
			t.Fatal(err)
		}
		request := string(h.request(test.endpoint))
		want := "GET / HTTP/1.1\r\nhost: " + test.want + "\r\nuser-agent: hdsd/HC\r\n\r\n"
		if request != want {
			t.Errorf("got %q, want %q", request, want)
		}
	}
}

func TestReusesConnection(t *testing.T) {
	for _, reuse := range []bool{true, false} {
		t.Run(fmt.Sprint(reuse), func(t *testing.T) {
			u := startUpstream(t, upstream.Options{})
			p := startPool(t)
			apply(t, p, one(httpHealthCheck(func(c *base, _ *httpProbe) {
				c.ReuseConnection = wrapperspb.Bool(reuse)
			}), endpoint(u.Addr())))
			waitProbes(t, u, 5)
			s := u.Stats()
			if reuse && s.Connections != 1 || !reuse && s.Connections < s.Probes { // the next may have connected already
				t.Errorf("%d connections for %d probes", s.Connections, s.Probes)
			}
		})
	}
}

// An upstream may close a kept connection between probes: that is no failure.
func TestClosedBetweenProbes(t *testing.T) {
	u := startUpstream(t, upstream.Options{Behaviour: answers(200, func(b *upstream.Behaviour) { b.Close = true })})
	p := startPool(t)
	apply(t, p, one(httpHealthCheck(func(c *base, _ *httpProbe) {
		c.NoTrafficInterval = durationpb.New(300 * time.Millisecond) // far longer than a busy machine takes to close
	}), endpoint(u.Addr())))
	waitFor(t, p, seen{up, 200})
	before := u.Stats().Probes
	for n := range uint64(5) {
		waitProbes(t, u, before+n)
		if got := p.all()[0]; got != (seen{up, 200}) {
			t.Fatalf("after probe %d: %v", n, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for name, address := range map[string]string{
		"IPv6": "[::1]:0", "pipe": t.TempDir() + "/pipe", "abstract pipe": "@hdsd-check-test",
	} {
		t.Run(name, func(t *testing.T) {
			u := startUpstream(t, upstream.Options{Address: address})
			p := startPool(t)
			apply(t, p, one(httpHealthCheck(), endpoint(u.Addr())))
			waitFor(t, p, seen{up, 200})
		})
	}
}

func TestHealthCheckConfigAddress(t *testing.T) {
	u := startUpstream(t, upstream.Options{})
	for name, config := range map[string]*endpointv3.Endpoint_HealthCheckConfig{
		"port":             {PortValue: u.Port()},
		"address":          {Address: endpoint(u.Addr()).GetAddress()},
		"address and port": {Address: endpoint("127.0.0.1:9").GetAddress(), PortValue: u.Port()},
	} {
		t.Run(name, func(t *testing.T) {
			e := endpoint("127.0.0.1:7")
			e.HealthCheckConfig = config
			p := startPool(t)
			apply(t, p, one(httpHealthCheck(), e))
			waitFor(t, p, seen{up, 200})
			reported := p.report().GetEndpointHealthResponse().GetEndpointsHealth()[0].GetEndpoint()
			if got := reported.GetAddress().GetSocketAddress().GetPortValue(); got != 7 || reported.GetHealthCheckConfig() != nil {
				t.Errorf("reported as %v", reported)
			}
		})
	}
}
