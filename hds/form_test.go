package hds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	redisv2 "github.com/envoyproxy/go-control-plane/envoy/config/health_checker/redis/v2"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/hds"
)

func httpCheck(path string) *corev3.HealthCheck {
	return &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(5 * time.Second),
		NoTrafficInterval: durationpb.New(5 * time.Second), NoTrafficHealthyInterval: durationpb.New(5 * time.Second),
		UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{
			Path: path, Host: "web", ExpectedStatuses: []*typev3.Int64Range{{Start: 200, End: 300}},
		}},
	}
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func redisCheck(t testing.TB, config proto.Message) *corev3.HealthCheck {
	check := httpCheck("/")
	check.HealthChecker = &corev3.HealthCheck_CustomHealthCheck_{CustomHealthCheck: &corev3.HealthCheck_CustomHealthCheck{
		Name: "envoy.health_checkers.redis", ConfigType: &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: pack(t, config)},
	}}
	return check
}

// asV2 gives what a v2 checker makes of the only cluster.
func asV2(t *testing.T, c *healthv3.ClusterHealthCheck) (*discoveryv2.ClusterHealthCheck, error) {
	t.Helper()
	spec := specifierOf(&healthv3.HealthCheckSpecifier{ClusterHealthChecks: []*healthv3.ClusterHealthCheck{c}})
	before := proto.CloneOf(spec.Message())
	fit, leftOut := hds.FormV2(spec)
	if !proto.Equal(before, spec.Message()) {
		t.Errorf("what others share was changed: %v", c)
	}
	if err := leftOut[c.GetClusterName()]; err != nil {
		return nil, err
	}
	m := &discoveryv2.HealthCheckSpecifier{}
	if err := proto.Unmarshal(encode(t, fit.Message()), m); err != nil {
		t.Fatal(err)
	}
	return m.GetClusterHealthChecks()[0], nil
}

func TestFormOfV2(t *testing.T) {
	tests := map[string]struct {
		check func(h *corev3.HealthCheck_HttpHealthCheck)
		want  string // in the JSON of the v2 check
	}{
		"usual":          {func(*corev3.HealthCheck_HttpHealthCheck) {}, `"path":"/ok"`},
		"GET":            {func(h *corev3.HealthCheck_HttpHealthCheck) { h.Method = corev3.RequestMethod_GET }, `"path":"/ok"`},
		"HTTP/2":         {func(h *corev3.HealthCheck_HttpHealthCheck) { h.CodecClientType = typev3.CodecClientType_HTTP2 }, `"codecClientType":"HTTP2"`},
		"a service name": {func(h *corev3.HealthCheck_HttpHealthCheck) { h.ServiceNameMatcher = regexMatcher("web.*") }, `"googleRe2":{}`},
	}
	for name, test := range tests {
		check := httpCheck("/ok")
		test.check(check.GetHttpHealthCheck())
		got, err := asV2(t, &healthv3.ClusterHealthCheck{ClusterName: "web", HealthChecks: []*corev3.HealthCheck{check}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := protojson.Marshal(got)
		if compact := strings.ReplaceAll(string(text), " ", ""); err != nil || !strings.Contains(compact, test.want) || !strings.Contains(compact, `"noTrafficInterval":"5s"`) {
			t.Errorf("%s: %s, %v", name, compact, err)
		}
	}
}

func TestCheckOfRedisIsSaidInV2(t *testing.T) {
	got, err := asV2(t, &healthv3.ClusterHealthCheck{ClusterName: "kv", HealthChecks: []*corev3.HealthCheck{redisCheck(t, &redisv3.Redis{Key: "alive"})}})
	if err != nil {
		t.Fatal(err)
	}
	var config redisv2.Redis
	if err := got.GetHealthChecks()[0].GetCustomHealthCheck().GetTypedConfig().UnmarshalTo(&config); err != nil || config.GetKey() != "alive" {
		t.Errorf("got %v, %v", got, err)
	}
}

func regexMatcher(regex string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: regex}}}
}

func TestWhatHasNoFormInV2IsLeftOut(t *testing.T) {
	inHTTP := func(change func(*corev3.HealthCheck_HttpHealthCheck)) func(*healthv3.ClusterHealthCheck) {
		return func(c *healthv3.ClusterHealthCheck) { change(c.GetHealthChecks()[0].GetHttpHealthCheck()) }
	}
	payload := &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: "00"}}
	tests := map[string]struct {
		change func(*healthv3.ClusterHealthCheck)
		text   string
	}{
		"sockets": {func(c *healthv3.ClusterHealthCheck) {
			c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls"}}
		}, "ClusterHealthCheck has no field 4"},
		"criteria": {func(c *healthv3.ClusterHealthCheck) {
			c.HealthChecks[0].TransportSocketMatchCriteria = &structpb.Struct{}
		}, "HealthCheck has no field 23"},
		"another healthy interval": {func(c *healthv3.ClusterHealthCheck) {
			c.HealthChecks[0].NoTrafficHealthyInterval = durationpb.New(time.Second)
		}, "no field 24"},
		"an endpoint's own address": {func(c *healthv3.ClusterHealthCheck) {
			c.LocalityEndpoints[0].Endpoints[0].HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{Address: endpointAt("10.0.0.2:80").GetAddress()}
		}, "HealthCheckConfig has no field 3"},
		"POST":           {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) { h.Method = corev3.RequestMethod_POST }), "no field 13"},
		"a request body": {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) { h.Send = payload }), "no bodies"},
		"a response body": {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) {
			h.Receive = []*corev3.HealthCheck_Payload{payload, payload}
		}), "no bodies"},
		"retriable": {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) {
			h.RetriableStatuses = []*typev3.Int64Range{{Start: 500, End: 600}}
		}), "no field 12"},
		"an unknown codec": {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) { h.CodecClientType = 77 }), "no value 77"},
		"contains": {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) {
			h.ServiceNameMatcher = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: "x"}}
		}), "no field 7"},
		"against the rules of v2": {inHTTP(func(h *corev3.HealthCheck_HttpHealthCheck) { h.Path = "" }), "does not allow"},
		"Redis on AWS": {func(c *healthv3.ClusterHealthCheck) {
			c.HealthChecks[0] = redisCheck(t, &redisv3.Redis{AwsIam: nil, Key: "k"})
			c.HealthChecks[0].GetCustomHealthCheck().GetTypedConfig().Value = append(c.HealthChecks[0].GetCustomHealthCheck().GetTypedConfig().GetValue(), 0x12, 0)
		}, "Redis has no field 2"},
		"another check": {func(c *healthv3.ClusterHealthCheck) { c.HealthChecks[0] = redisCheck(t, &corev3.Node{}) }, `v2 has no "envoy.health_checkers.redis"`},
		"an event service": {func(c *healthv3.ClusterHealthCheck) {
			c.HealthChecks[0].EventService = &corev3.EventServiceConfig{ConfigSourceSpecifier: &corev3.EventServiceConfig_GrpcService{GrpcService: &corev3.GrpcService{
				TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{
					TargetUri: "x", StatPrefix: "x", CallCredentials: []*corev3.GrpcService_GoogleGrpc_CallCredentials{{
						CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_FromPlugin{
							FromPlugin: &corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin{
								Name: "x", ConfigType: &corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin_TypedConfig{TypedConfig: pack(t, &corev3.Node{})},
							},
						},
					}},
				}},
			}}}
		}, "v2 does not know what"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			given := assignment(checked{4, "app/a/10.0.0.4:80"}, checked{1, web1}, checked{3, "zoo/a/10.0.0.3:80"})
			message := given.Message()
			message.ClusterHealthChecks[1].HealthChecks = []*corev3.HealthCheck{httpCheck("/")}
			test.change(message.ClusterHealthChecks[1])
			spec := specifierOf(message)
			spec.Order = given.Order
			fit, leftOut := hds.FormV2(spec)
			if err := leftOut["web"]; len(leftOut) != 1 || err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("left out %v, want %q", leftOut, test.text)
			}
			if text := specifierText(fit.Message()); text != "app{a:10.0.0.4:80,}zoo{a:10.0.0.3:80,}" || fmt.Sprint(fit.Order, fit.Addresses) != "[4 3] [10.0.0.4:80 10.0.0.3:80]" {
				t.Errorf("what stays: %s %v %v", text, fit.Order, fit.Addresses)
			}
		})
	}
}

// FuzzV2Specifier holds the form of v2 against what it was made of: whatever a
// v2 checker reads says the same as what v3 said, and keeps the rules of v2.
func FuzzV2Specifier(f *testing.F) {
	spec := assignment(checked{1, web1}, checked{9, db1})
	spec.Clusters[0].Head.HealthChecks = []*corev3.HealthCheck{httpCheck("/ok"), redisCheck(f, &redisv3.Redis{Key: "k"})}
	f.Add(encode(f, spec.Message()))
	spec.Clusters[0].Head.HealthChecks[0].GetHttpHealthCheck().ServiceNameMatcher = regexMatcher("a")
	spec.Clusters[1].Head.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls"}}
	f.Add(encode(f, spec.Message()))
	f.Fuzz(func(t *testing.T, message []byte) {
		m := &healthv3.HealthCheckSpecifier{}
		if proto.Unmarshal(message, m) != nil {
			return
		}
		m.Interval = durationpb.New(m.GetInterval().AsDuration()) // always hdsd's own
		if _, err := proto.Marshal(m); err != nil {
			return
		}
		spec := specifierOf(m)
		before := proto.CloneOf(spec.Message())
		fit, leftOut := hds.FormV2(spec)
		if !proto.Equal(before, spec.Message()) {
			t.Error("what others share was changed")
		}
		if len(leftOut) == 0 && len(fit.Message().GetClusterHealthChecks()) != len(m.GetClusterHealthChecks()) {
			t.Error("a cluster is missing without a reason")
		}
		v2 := &discoveryv2.HealthCheckSpecifier{}
		if err := proto.Unmarshal(encode(t, fit.Message()), v2); err != nil {
			t.Fatalf("v2 cannot read it: %v", err)
		}
		for _, c := range v2.GetClusterHealthChecks() {
			if err := c.ValidateAll(); err != nil {
				t.Errorf("v2 does not allow it: %v", err)
			}
		}
		// Back again nothing is lost: v2 has read all that v3 had said.
		back := &healthv3.HealthCheckSpecifier{}
		known := proto.UnmarshalOptions{DiscardUnknown: true}
		stripped := &discoveryv2.HealthCheckSpecifier{}
		if err := known.Unmarshal(encode(t, fit.Message()), stripped); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(encode(t, stripped), back); err != nil || !proto.Equal(back, fit.Message()) {
			t.Errorf("v3 said\n%v\nand v2 reads\n%v (%v)", fit.Message(), back, err)
		}
	})
}
