package check

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestIntervalOfReports: a second where there is none, and zero, which means
// never, as it stands.
func TestIntervalOfReports(t *testing.T) {
	for said, want := range map[*durationpb.Duration]time.Duration{
		nil: time.Second, durationpb.New(0): 0, durationpb.New(250 * time.Millisecond): 250 * time.Millisecond,
	} {
		if s, err := parseSpecifier(&healthv3.HealthCheckSpecifier{Interval: said}); err != nil || s.interval != want {
			t.Errorf("%v: got %+v, %v; want %s", said, s, err, want)
		}
	}
}

func TestRejects(t *testing.T) {
	good := func() *endpointv3.Endpoint { return endpoint("127.0.0.1:80") }
	withHTTP := func(edit editHTTP) *healthv3.HealthCheckSpecifier {
		return one(httpHealthCheck(edit), good())
	}
	at := func(edit func(*corev3.SocketAddress)) *healthv3.HealthCheckSpecifier {
		e := good()
		edit(e.GetAddress().GetSocketAddress())
		return one(tcpHealthCheck(), e)
	}
	for name, test := range map[string]struct {
		specifier *healthv3.HealthCheckSpecifier
		want      string // in the reason
	}{
		"custom": {withHTTP(func(c *base, _ *httpProbe) {
			packed, _ := anypb.New(&redisv3.Redis{})
			c.HealthChecker = &corev3.HealthCheck_CustomHealthCheck_{CustomHealthCheck: &corev3.HealthCheck_CustomHealthCheck{
				Name: "x", ConfigType: &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: packed},
			}}
		}), `custom_health_check: "x"`},
		"gRPC's metadata": {withHTTP(func(c *base, _ *httpProbe) {
			c.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
				InitialMetadata: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "x", Value: "%HOSTNAME%"}}},
			}}
		}), "initial_metadata"},
		"another protocol":    {withHTTP(func(_ *base, h *httpProbe) { h.CodecClientType = 99 }), "CodecClientType"},
		"no payload":          {withHTTP(func(_ *base, h *httpProbe) { h.Send = text("") }), "Text"},
		"no checker":          {withHTTP(func(c *base, _ *httpProbe) { c.HealthChecker = nil }), "HealthChecker"},
		"no timeout":          {withHTTP(func(c *base, _ *httpProbe) { c.Timeout = nil }), "Timeout"},
		"no interval":         {withHTTP(func(c *base, _ *httpProbe) { c.Interval = nil }), "Interval"},
		"no threshold":        {withHTTP(func(c *base, _ *httpProbe) { c.HealthyThreshold = nil }), "HealthyThreshold"},
		"threshold 0":         {withHTTP(func(c *base, _ *httpProbe) { c.UnhealthyThreshold = wrapperspb.UInt32(0) }), "unhealthy_threshold"},
		"no path":             {withHTTP(func(_ *base, h *httpProbe) { h.Path = "" }), "Path"},
		"line break in path":  {withHTTP(func(_ *base, h *httpProbe) { h.Path = "/\r\nx: y" }), "Path"},
		"CONNECT":             {withHTTP(func(_ *base, h *httpProbe) { h.Method = corev3.RequestMethod_CONNECT }), "Method"},
		"no header's name":    {withHTTP(adding("bad header", "x")), "bad header"},
		"command in a header": {withHTTP(adding("x", "%HOSTNAME%")), "%HOSTNAME%"},
		"port too large":      {at(func(s *corev3.SocketAddress) { s.PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: 65536} }), "PortValue"},
		"UDP":                 {at(func(s *corev3.SocketAddress) { s.Protocol = corev3.SocketAddress_UDP }), "UDP"},
		"no address":          {at(func(s *corev3.SocketAddress) { s.Address = "" }), "Address"},
		"no pipe":             {one(tcpHealthCheck(), &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{}}}}), "Path"},
		"interval":            {&healthv3.HealthCheckSpecifier{Interval: durationpb.New(-1)}, "negative"},
		"health_check_config": {one(tcpHealthCheck(), &endpointv3.Endpoint{
			Address:           good().GetAddress(),
			HealthCheckConfig: &endpointv3.Endpoint_HealthCheckConfig{Address: &corev3.Address{}},
		}), "HealthCheckConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseSpecifier(test.specifier)
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.want)) {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
		})
	}
}

func adding(name, value string) editHTTP {
	return func(_ *base, h *httpProbe) {
		h.RequestHeadersToAdd = []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: name, Value: value}}}
	}
}

func TestHeaders(t *testing.T) {
	const (
		add       = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		absent    = corev3.HeaderValueOption_ADD_IF_ABSENT
		overwrite = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
		replace   = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS
	)
	start := []field{{"user-agent", "us"}, {"x", "1"}}
	for _, test := range []struct {
		remove []string
		name   string
		value  string
		action corev3.HeaderValueOption_HeaderAppendAction
		want   string
	}{
		{nil, "X", "2", add, "[{user-agent us} {x 1} {x 2}]"},
		{nil, "User-Agent", "2", add, "[{user-agent us,2} {x 1}]"},
		{nil, "x", "2", absent, "[{user-agent us} {x 1}]"},
		{nil, "y", "2", absent, "[{user-agent us} {x 1} {y 2}]"},
		{nil, "x", "2", overwrite, "[{user-agent us} {x 2}]"},
		{nil, "y", "2", overwrite, "[{user-agent us} {x 1} {y 2}]"},
		{nil, "x", "2", replace, "[{user-agent us} {x 2}]"},
		{nil, "y", "2", replace, "[{user-agent us} {x 1}]"},
		{nil, "y", "", add, "[{user-agent us} {x 1}]"},
		{[]string{"X", "user-agent"}, "x", "2", add, "[{x 2}]"},
	} {
		got, err := editHeaders(append([]field{}, start...), test.remove, []*corev3.HeaderValueOption{{
			Header: &corev3.HeaderValue{Key: test.name, Value: test.value}, AppendAction: test.action,
		}})
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%s %q %s: got %v, %v, want %s", test.name, test.value, test.action, got, err, test.want)
		}
	}
}

func FuzzSpecifier(f *testing.F) {
	for _, m := range []*healthv3.HealthCheckSpecifier{
		{},
		one(httpHealthCheck(receiving(payload("x"), text("00"))), endpoint("127.0.0.1:80"), endpoint("[::1]:80"), endpoint("/x")),
		one(tcpHealthCheck(exchange("00", text("00"))), endpoint("127.0.0.1:80")),
		one(httpHealthCheck(adding("x", "100%%")), endpoint("127.0.0.1:80")),
		one(httpHealthCheck(func(c *base, _ *httpProbe) { namedGRPCCheck(c) }), endpoint("127.0.0.1:80")),
		one(httpHealthCheck(func(c *base, _ *httpProbe) { redisCheckOf("key")(c) }), endpoint("127.0.0.1:80")),
		one(httpHealthCheck(func(c *base, _ *httpProbe) { posting(c) }), endpoint("127.0.0.1:80")),
		secureSpecifier(newTLSLab(f).context()),
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &healthv3.HealthCheckSpecifier{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		s, err := parseSpecifier(m)
		if err != nil {
			return
		}
		for _, c := range s.clusters {
			tryCluster(t, c)
		}
	})
}

// tryCluster does what a pool does with a cluster that was accepted.
func tryCluster(t *testing.T, c clusterSpec) {
	for _, check := range c.checks {
		if check.http != nil {
			check.http.request2("", false)
			request := check.http.request("")
			if head, _, _ := bytes.Cut(request, []byte("\r\n\r\n")); bytes.ContainsAny(head, "\x00") {
				t.Errorf("request %q", request)
			}
		}
		if check.grpc != nil {
			check.grpc.request("", true)
		}
		for o := Passed; o <= TimedOut; o++ {
			next, pending := NewState(down).Apply(&check.policy, o)
			if d := check.policy.Next(o, pending, func(n int64) int64 { return n - 1 }); d <= 0 {
				t.Errorf("delay %d after %d in %+v", d, o, next)
			}
		}
		if d := check.policy.First(func(n int64) int64 { return n - 1 }); d < 0 || d == math.MaxInt64 {
			t.Errorf("first after %d", d)
		}
	}
	buildCluster(&c, nil, nil)
}

func FuzzHTTPResponse(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx: y\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 503 No\r\nx-envoy-degraded:\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\x00",
	} {
		f.Add([]byte(answer))
	}
	h, err := newHTTPCheck(&httpProbe{Path: "/", Receive: []*corev3.HealthCheck_Payload{payload("hi")}}, "web")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newReader()
		r.source = bytes.NewReader(b)
		a, err := readAnswer(r, h)
		if err == nil && (a.status < 100 || a.status > 999 || len(a.body) > h.receiveBuffer) {
			t.Errorf("status %d, %d bytes", a.status, len(a.body))
		}
		h.judge(a.status, a.header, a.body)
	})
}
