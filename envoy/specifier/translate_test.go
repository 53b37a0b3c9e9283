package specifier

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/health"
)

const checkText = `timeout {seconds: 1} interval {seconds: 5} unhealthy_threshold {value: 2} healthy_threshold {value: 1} `

func parse[M proto.Message](t testing.TB, text string, into M) M {
	t.Helper()
	if err := prototext.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return into
}

func check(t testing.TB, text string) *corev3.HealthCheck {
	t.Helper()
	return parse(t, checkText+text, &corev3.HealthCheck{})
}

func endpointText(address string) string {
	return `lb_endpoints {endpoint {address {socket_address {address: "` + address + `" port_value: 80}}}}`
}

func assignment(t testing.TB, text string) *endpointv3.ClusterLoadAssignment {
	t.Helper()
	return parse(t, text, &endpointv3.ClusterLoadAssignment{})
}

func tlsSocket(t testing.TB, sni string) *corev3.TransportSocket {
	t.Helper()
	packed, err := anypb.New(&tlsv3.UpstreamTlsContext{Sni: sni})
	if err != nil {
		t.Fatal(err)
	}
	return &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}}
}

func specifierOf(c *Cluster) *Specifier {
	var items []Item
	for i := range c.Endpoints {
		items = append(items, Item{Cluster: c, Endpoint: i, ID: health.EndpointID(i)})
	}
	return Build(items, time.Second)
}

func TestChecksAreFilledIn(t *testing.T) {
	c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{check(t, `http_health_check {path: "/"}`)}, Options{})
	got := specifierOf(c).Message().GetClusterHealthChecks()[0]
	want := check(t, `http_health_check {path: "/" host: "web"} no_traffic_interval {seconds: 5} no_traffic_healthy_interval {seconds: 5} initial_jitter {seconds: 5}`)
	if !proto.Equal(got.HealthChecks[0], want) || got.ClusterName != "web" {
		t.Errorf("cluster %q is checked by %v, want %v", got.ClusterName, got.HealthChecks[0], want)
	}
	timing := Timing{Interval: 5 * time.Second, Timeout: time.Second, InitialJitter: 5 * time.Second, UnhealthyThreshold: 2, HealthyThreshold: 1}
	if c.Timing != timing || !slices.Equal(c.Needs, []health.Ability{health.HTTP}) {
		t.Errorf("timing %+v, needs %v", c.Timing, c.Needs)
	}
}

// TestProbesAreSpread over the whole interval, or over 10 s of a longer one, whose later rounds then drift
// apart. What the source says of either stays.
func TestProbesAreSpread(t *testing.T) {
	for _, test := range []struct {
		text            string
		jitter, slowest time.Duration
		drift           uint32
	}{
		{`interval {seconds: 1}`, time.Second, time.Second, 0},
		{`interval {seconds: 10}`, 10 * time.Second, 10 * time.Second, 0},
		{`interval {seconds: 60}`, 10 * time.Second, 66 * time.Second, 10},
		{`interval {seconds: 60} interval_jitter {seconds: 1}`, 10 * time.Second, 61 * time.Second, 0},
		{`interval {seconds: 60} interval_jitter_percent: 50`, 10 * time.Second, 90 * time.Second, 50},
		{`interval {seconds: 60} initial_jitter {seconds: 2}`, 2 * time.Second, 60 * time.Second, 0},
	} {
		given := check(t, `http_health_check {path: "/"}`)
		proto.Merge(given, parse(t, test.text, &corev3.HealthCheck{}))
		c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{given}, Options{})
		got := c.Checks()[0]
		if got.GetInitialJitter().AsDuration() != test.jitter || got.GetIntervalJitterPercent() != test.drift || c.Timing.InitialJitter != test.jitter || c.Timing.Interval != test.slowest {
			t.Errorf("%s: %v, timing %+v", test.text, got, c.Timing)
		}
	}
}

func TestBinaryPayloadsBecomeHex(t *testing.T) {
	given := check(t, `tcp_health_check {send {binary: "\x01\xfe"} receive {binary: "ok"} receive {text: "00"}}`)
	c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{given}, Options{})
	got := specifierOf(c).Message().GetClusterHealthChecks()[0].HealthChecks[0].GetTcpHealthCheck()
	want := parse(t, `send {text: "01fe"} receive {text: "6f6b"} receive {text: "00"}`, &corev3.HealthCheck_TcpHealthCheck{})
	if !proto.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	if given.GetTcpHealthCheck().GetSend().GetBinary() == nil {
		t.Error("the source's check was changed")
	}
}

func TestTheSourcesValuesStay(t *testing.T) {
	said := check(t, `http_health_check {path: "/" host: "h"} no_traffic_interval {seconds: 7} no_traffic_healthy_interval {seconds: 8} initial_jitter {}`)
	c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{said}, Options{NoTrafficIntervals: true})
	if got := specifierOf(c).Message().GetClusterHealthChecks()[0].HealthChecks[0]; !proto.Equal(got, said) {
		t.Errorf("sent %v, want %v", got, said)
	}
	if c.Timing.Interval != 8*time.Second {
		t.Errorf("interval %v, want the slowest that the checker uses", c.Timing.Interval)
	}
}

// TestIntervalsAreThoseOfTraffic: checkers probe as often as an Envoy with traffic, unless
// the cluster goes by the intervals without.
func TestIntervalsAreThoseOfTraffic(t *testing.T) {
	for _, test := range []struct {
		text             string
		own              bool
		whenUp, whenDown int64
	}{
		{``, false, 5, 5},
		{`no_traffic_interval {seconds: 20}`, false, 5, 5},
		{`no_traffic_interval {seconds: 20} no_traffic_healthy_interval {seconds: 30}`, false, 5, 5},
		{`unhealthy_interval {seconds: 1} no_traffic_interval {seconds: 20}`, false, 5, 1},
		{`unhealthy_interval {seconds: 60} unhealthy_edge_interval {seconds: 1}`, false, 5, 5},
		{``, true, 5, 5},
		{`no_traffic_interval {seconds: 20}`, true, 20, 20},
		{`no_traffic_healthy_interval {seconds: 30} unhealthy_interval {seconds: 1}`, true, 30, 1},
	} {
		given := check(t, `http_health_check {path: "/"} `+test.text)
		c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{given}, Options{NoTrafficIntervals: test.own})
		sent := specifierOf(c).Message().GetClusterHealthChecks()[0].HealthChecks[0]
		if up, down := sent.GetNoTrafficHealthyInterval().GetSeconds(), sent.GetNoTrafficInterval().GetSeconds(); up != test.whenUp || down != test.whenDown {
			t.Errorf("%q (%t): every %d s while up and %d s while down, want %d and %d", test.text, test.own, up, down, test.whenUp, test.whenDown)
		}
	}
}

const redisText = `custom_health_check {name: "envoy.health_checkers.redis" typed_config {[type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis] {}}}`

// Envoy's Redis check follows no criteria: its socket is for all, or nobody's.
func TestRedisBehindTLS(t *testing.T) {
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	secure := &clusterv3.Cluster{TransportSocket: tlsSocket(t, "a")}
	c := Translate("web", secure, a, []*corev3.HealthCheck{check(t, redisText), check(t, `tcp_health_check {}`)}, Options{})
	sent := specifierOf(c).Message().GetClusterHealthChecks()
	if len(sent) != 1 || len(sent[0].GetTransportSocketMatches()) != 1 || len(sent[0].GetTransportSocketMatches()[0].GetMatch().GetFields()) != 0 {
		t.Errorf("sent %v, excluded %v", sent, c.Excluded)
	}
	for name, test := range map[string]struct {
		redis, tcp string
		reached    bool
	}{"Redis by TLS": {"tls", "plain", false}, "Redis in plaintext": {"plain", "tls", true}} {
		criteria := func(value string) string {
			return ` transport_socket_match_criteria {fields {key: "use" value {string_value: "` + value + `"}}}`
		}
		mixed := &clusterv3.Cluster{TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{{
			Name: "tls", Match: check(t, criteria("tls")+`tcp_health_check {}`).GetTransportSocketMatchCriteria(), TransportSocket: tlsSocket(t, "a"),
		}}}
		c := Translate("web", mixed, a, []*corev3.HealthCheck{check(t, redisText+criteria(test.redis)), check(t, `tcp_health_check {}`+criteria(test.tcp))}, Options{})
		if (len(c.Endpoints) == 1) != test.reached || !test.reached && !strings.Contains(c.Excluded[0].Reason, "in plaintext") {
			t.Errorf("%s: %d endpoints, excluded %v", name, len(c.Endpoints), c.Excluded)
		}
	}
}

// Connections of Redis checks are traffic to Envoy.
func TestTimingOfRedis(t *testing.T) {
	c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{check(t, redisText+`no_traffic_interval {seconds: 1} unhealthy_interval {seconds: 9}`)}, Options{})
	if c.Timing.Interval != 9*time.Second {
		t.Errorf("interval %v; excluded %v", c.Timing.Interval, c.Excluded)
	}
}

func TestEndpointsAreExcludedAlone(t *testing.T) {
	c := Translate("web", nil, assignment(t, `endpoints {`+
		endpointText("10.0.0.1")+endpointText("fe80::1%lo")+endpointText("10.0.0.1")+endpointText("::1")+
		`lb_endpoints {endpoint {health_check_config {disable_active_health_check: true} address {socket_address {address: "10.0.0.9" port_value: 80}}}}
		lb_endpoints {endpoint {address {pipe {path: "/run/x.sock"}}}}
		lb_endpoints {endpoint {address {socket_address {address: "10.0.0.3" port_value: 65536}}}}
		lb_endpoints {endpoint_name: "x"}
	} endpoints {} endpoints {locality {zone: "b"}`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, Options{})
	var checked []string
	for i, e := range c.Endpoints {
		checked = append(checked, c.LocalityOf(i).Zone+" "+e.Address)
	}
	if want := []string{" 10.0.0.1:80", " [::1]:80", " /run/x.sock", "b 10.0.0.1:80"}; !slices.Equal(checked, want) {
		t.Errorf("checked: %q, want %q", checked, want)
	}
	var aside []string
	for _, q := range c.Excluded {
		aside = append(aside, q.Address)
	}
	if want := []string{"[fe80::1%lo]:80", "10.0.0.3:65536", "endpoints[0].lb_endpoints[7]"}; !slices.Equal(aside, want) {
		t.Errorf("excluded: %v, want %q", c.Excluded, want)
	}
	if reason := c.Excluded[0].Reason; !strings.Contains(reason, "endpoint.address.socket_address.address") || !strings.Contains(reason, "give an address without one") {
		t.Errorf("the reason names no field or no cure: %s", reason)
	}
	if last := c.Endpoints[3]; last.Locality != 2 || last.Index != 0 {
		t.Errorf("the last endpoint stands at %d, %d", last.Locality, last.Index)
	}
}

func TestClustersAreExcludedAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		cluster, check, field string
	}{
		"no check":     {"", "", "health_checks"},
		"no path":      {"", checkText + `http_health_check {}`, "http_health_check.path"},
		"method":       {"", checkText + `http_health_check {path: "/" method: CONNECT}`, "http_health_check.method"},
		"no timeout":   {"", `interval {seconds: 1} unhealthy_threshold {value: 1} healthy_threshold {value: 1} tcp_health_check {}`, "timeout"},
		"no kind":      {"", checkText, "health_checks[0]"},
		"regex":        {"", checkText + `http_health_check {path: "/" service_name_matcher {safe_regex {regex: "[^/]+/[^/]+"}}}`, "regex"},
		"header":       {"", checkText + `http_health_check {path: "/" request_headers_to_add {header {key: "connection" value: "x"}}}`, "header.key"},
		"unknown kind": {"", checkText + `custom_health_check {}`, "custom_health_check.name"},
		"no socket":    {`transport_socket {}`, checkText + `tcp_health_check {}`, "transport_socket"},
	} {
		t.Run(name, func(t *testing.T) {
			var checks []*corev3.HealthCheck
			if c.check != "" {
				checks = append(checks, parse(t, c.check, &corev3.HealthCheck{}))
			}
			got := Translate("web", parse(t, c.cluster, &clusterv3.Cluster{}), assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), checks, Options{})
			if len(got.Endpoints) > 0 || len(got.Excluded) != 1 || got.Excluded[0].Address != "" || !strings.Contains(got.Excluded[0].Reason, c.field) {
				t.Errorf("endpoints %v, excluded %v, want the cluster because of %s", got.Endpoints, got.Excluded, c.field)
			}
		})
	}
}

// TestLocalityByLEDSIsExcludedAlone: what it lists all the same counts for
// nothing, as in an Envoy.
func TestLocalityByLEDSIsExcludedAlone(t *testing.T) {
	for _, list := range []string{`leds_cluster_locality_config {leds_collection_name: "x"}`, `load_balancer_endpoints {}`} {
		a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`} endpoints {`+list+endpointText("10.0.0.2")+`} endpoints {`+list+`}`)
		got := Translate("web", nil, a, []*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, Options{})
		var aside []string
		for _, q := range got.Excluded {
			if strings.Contains(q.Reason, "by LEDS") {
				aside = append(aside, q.Address)
			}
		}
		if len(got.Endpoints) != 1 || got.Endpoints[0].Address != "10.0.0.1:80" || !slices.Equal(aside, []string{"endpoints[1]", "10.0.0.2:80", "endpoints[2]"}) {
			t.Errorf("checked are %+v, set aside %+v", got.Endpoints, got.Excluded)
		}
		if found := ReviewEndpoints("web", a, Options{}); !slices.Equal(found, got.Excluded) {
			t.Errorf("found are %+v", found)
		}
	}
}

func TestUnknownFieldsAreRefused(t *testing.T) {
	unknown := check(t, `http_health_check {path: "/"}`)
	unknown.GetHttpHealthCheck().ProtoReflect().SetUnknown([]byte{0xf8, 0xff, 0x03, 0x01})
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+endpointText("10.0.0.2")+`}`)
	if c := Translate("web", nil, a, []*corev3.HealthCheck{unknown}, Options{}); len(c.Endpoints) != 0 || !strings.Contains(c.Excluded[0].Reason, "http_health_check: holds a field") {
		t.Errorf("a check with an unknown field: %+v", c)
	}
	a.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().ProtoReflect().SetUnknown([]byte{0xf8, 0xff, 0x03, 0x01})
	if c := Translate("web", nil, a, []*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, Options{}); len(c.Endpoints) != 1 || len(c.Excluded) != 1 || c.Excluded[0].Address != "10.0.0.1:80" {
		t.Errorf("an endpoint with an unknown field: %+v", c)
	}
}

func TestNamesDifferWhereEnvoyCannotChangeInPlace(t *testing.T) {
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	name := func(config *clusterv3.Cluster, checks ...*corev3.HealthCheck) string {
		t.Helper()
		c := Translate("web", config, a, checks, Options{})
		if len(c.Endpoints) != 1 {
			t.Fatalf("not checked: %v", c.Excluded)
		}
		return specifierOf(c).Message().GetClusterHealthChecks()[0].GetClusterName()
	}
	http, other := check(t, `http_health_check {path: "/"}`), check(t, `http_health_check {path: "/b"}`)
	if name(nil, http) != "web" || name(nil, other) != "web" {
		t.Error("a plain cluster does not keep its name")
	}
	seen := map[string]bool{"web": true}
	for _, different := range []string{
		name(nil, check(t, `grpc_health_check {}`)), name(nil, check(t, `grpc_health_check {service_name: "s"}`)),
		name(&clusterv3.Cluster{TransportSocket: tlsSocket(t, "a")}, http), name(&clusterv3.Cluster{TransportSocket: tlsSocket(t, "b")}, http),
	} {
		if seen[different] || !strings.HasPrefix(different, "web#") {
			t.Errorf("the name %q is not of its own", different)
		}
		seen[different] = true
	}
	if tls := (&clusterv3.Cluster{TransportSocket: tlsSocket(t, "a")}); name(tls, http) != name(tls, other) {
		t.Error("what Envoy can change in place changes the name")
	}
}

// TestEndpointsAreInTheirLocalities, as EDS has them, with the check's own
// address and port beside those of traffic.
func TestEndpointsAreInTheirLocalities(t *testing.T) {
	a := assignment(t, `endpoints {locality {region: "r" zone: "b" sub_zone: "s"}`+endpointText("10.0.0.1")+endpointText("10.0.0.2")+`}
		endpoints {locality {zone: "a"} lb_endpoints {endpoint {address {socket_address {address: "10.0.0.1" port_value: 80}} health_check_config {port_value: 8081 hostname: "h"}}}}`)
	got := specifierOf(Translate("web", nil, a, []*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, Options{})).Message().GetClusterHealthChecks()
	want := parse(t, `
		locality_endpoints {locality {zone: "a"} endpoints {address {socket_address {address: "10.0.0.1" port_value: 80}} health_check_config {port_value: 8081 hostname: "h"}}}
		locality_endpoints {locality {region: "r" zone: "b" sub_zone: "s"}
			endpoints {address {socket_address {address: "10.0.0.1" port_value: 80}}} endpoints {address {socket_address {address: "10.0.0.2" port_value: 80}}}}`, &healthv3.ClusterHealthCheck{})
	if len(got) != 1 || got[0].GetClusterName() != "web" || !proto.Equal(&healthv3.ClusterHealthCheck{LocalityEndpoints: got[0].GetLocalityEndpoints()}, want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
}

// TestSocketsAreSentAndBindingIsNot: a cluster's one socket becomes a match, too,
// since a specifier has no other place for it.
func TestSocketsAreSentAndBindingIsNot(t *testing.T) {
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	checks := []*corev3.HealthCheck{check(t, `tcp_health_check {}`)}
	sent := func(c *clusterv3.Cluster, checks []*corev3.HealthCheck) *healthv3.ClusterHealthCheck {
		t.Helper()
		out := Translate("web", c, a, checks, Options{})
		if len(out.Endpoints) != 1 {
			t.Fatalf("not checked: %v", out.Excluded)
		}
		return specifierOf(out).Message().GetClusterHealthChecks()[0]
	}
	// An address of the data plane's machine is none of the checkers'.
	bound := parse(t, `upstream_bind_config {source_address {address: "10.0.0.9" port_value: 80}}`, &clusterv3.Cluster{})
	if got := sent(bound, checks); !proto.Equal(got, sent(nil, checks)) {
		t.Errorf("bound: %v", got)
	}
	criteria := parse(t, `transport_socket_match_criteria {fields {key: "use" value {string_value: "tls"}}}`, &corev3.HealthCheck{}).GetTransportSocketMatchCriteria()
	matched := check(t, `tcp_health_check {}`)
	matched.TransportSocketMatchCriteria = criteria
	for name, test := range map[string]struct {
		cluster *clusterv3.Cluster
		checks  []*corev3.HealthCheck
	}{
		"one socket": {&clusterv3.Cluster{TransportSocket: tlsSocket(t, "a")}, checks},
		"a match": {&clusterv3.Cluster{TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{
			{Name: "tls", Match: criteria, TransportSocket: tlsSocket(t, "a")},
		}}, []*corev3.HealthCheck{matched}},
	} {
		got := sent(test.cluster, test.checks)
		asked, matches := got.GetHealthChecks()[0].GetTransportSocketMatchCriteria(), got.GetTransportSocketMatches()
		if len(matches) != 1 || !proto.Equal(matches[0].GetTransportSocket().GetTypedConfig(), tlsSocket(t, "a").GetTypedConfig()) ||
			len(asked.GetFields()) == 0 || !proto.Equal(matches[0].GetMatch(), asked) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSourcesAreNotChanged(t *testing.T) {
	c := &clusterv3.Cluster{TransportSocket: tlsSocket(t, "a")}
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	a.Endpoints[0].LbEndpoints[0].GetEndpoint().Hostname = "h"
	k := check(t, `http_health_check {path: "/"} event_log_path: "/x"`)
	before := []proto.Message{proto.Clone(c), proto.Clone(a), proto.Clone(k)}
	Translate("web", c, a, []*corev3.HealthCheck{k}, Options{})
	for i, after := range []proto.Message{c, a, k} {
		if !proto.Equal(before[i], after) {
			t.Errorf("%v became %v", before[i], after)
		}
	}
}

// TestReviewGoesOn: what is wrong with a cluster hides nothing of its
// endpoints, nor the other way round.
func TestReviewGoesOn(t *testing.T) {
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+endpointText("fe80::1%lo")+`} endpoints {`+endpointText("fe80::1%eth0")+`}`)
	checks := []*corev3.HealthCheck{check(t, `http_health_check {path: "/" host: "\n"}`), check(t, `tcp_health_check {send {}}`)}
	wrong := ReviewCluster("web", nil, a, checks, Options{})
	if len(wrong) != 2 || !strings.HasPrefix(wrong[0], "health_checks[0].http_health_check.host: ") || !strings.HasPrefix(wrong[1], "health_checks[1].tcp_health_check.send: ") {
		t.Errorf("the cluster: %q", wrong)
	}
	found := ReviewEndpoints("web", a, Options{})
	if len(found) != 2 || found[0].Locality != 0 || found[0].Index != 1 || found[1].Locality != 1 || found[1].Index != 0 || !strings.Contains(found[0].Reason, `"fe80::1%lo"`) {
		t.Errorf("the endpoints: %+v", found)
	}
}

// TestWhoSignsMayComeBySDS: a source says what is tested of a certificate, and
// the checkers' secrets say who signs it.
func TestWhoSignsMayComeBySDS(t *testing.T) {
	const (
		names  = `match_typed_subject_alt_names {san_type: DNS matcher {exact: "a"}}`
		secret = `validation_context_sds_secret_config {name: "ca" sds_config {resource_api_version: V3 api_config_source {
			api_type: GRPC transport_api_version: V3 grpc_services {envoy_grpc {cluster_name: "sds"}}}}}`
	)
	combined := func(rest, secret string) string {
		return `combined_validation_context {default_validation_context {` + rest + `} ` + secret + `}`
	}
	for text, problem := range map[string]string{
		combined(names, secret):                                        "",
		combined(`match_subject_alt_names {exact: "a"}`, secret):       "",
		combined(`allow_expired_certificate: true`, secret):            "",
		combined(`only_verify_leaf_cert_crl: true`, secret):            "",
		`validation_context {only_verify_leaf_cert_crl: true}`:         "",
		combined(names, strings.Replace(secret, `"ca"`, `"other"`, 1)): `cannot finds the endpoint unhealthy; add it to checkers.sds_secrets`,
		strings.Replace(secret, `"ca"`, `"other"`, 1):                  `cannot finds the endpoint unhealthy; add it to checkers.sds_secrets`,
	} {
		context, err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: parse(t, text, &tlsv3.CommonTlsContext{})})
		if err != nil {
			t.Fatal(err)
		}
		socket := &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: context}}
		got := Translate("web", &clusterv3.Cluster{TransportSocket: socket}, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`),
			[]*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, Options{SDSSecrets: map[string]bool{"ca": true}})
		switch {
		case problem == "" && (len(got.Endpoints) != 1 || slices.Contains(got.Needs, secretDiscovery) != strings.Contains(text, "sds_config")):
			t.Errorf("%s: %+v, which needs %v", text, got.Excluded, got.Needs)
		case problem != "" && (len(got.Excluded) != 1 || !strings.Contains(got.Excluded[0].Reason, problem)):
			t.Errorf("%s is set aside by %+v, want %q", text, got.Excluded, problem)
		}
	}
}

// TestThresholdsOfZero are sent as 1, as an Envoy counts them that checks for itself.
func TestThresholdsOfZero(t *testing.T) {
	zero := check(t, `tcp_health_check {}`)
	zero.UnhealthyThreshold.Value, zero.HealthyThreshold.Value = 0, 0
	c := Translate("web", nil, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{zero}, Options{})
	if len(c.Endpoints) != 1 {
		t.Fatalf("excluded %+v", c.Excluded)
	}
	sent := specifierOf(c).Message().GetClusterHealthChecks()[0].GetHealthChecks()[0]
	if sent.GetUnhealthyThreshold().GetValue() != 1 || sent.GetHealthyThreshold().GetValue() != 1 || c.Timing.UnhealthyThreshold != 1 || c.Timing.HealthyThreshold != 1 {
		t.Errorf("sent %v, timing %+v", sent, c.Timing)
	}
}

// TestHarmlessValuesAreSent, however odd.
func TestHarmlessValuesAreSent(t *testing.T) {
	twice, err := anypb.New(parse(t, `common_tls_context {tls_params {cipher_suites: "AES128-SHA" cipher_suites: "AES128-SHA"}}`, &tlsv3.UpstreamTlsContext{}))
	if err != nil {
		t.Fatal(err)
	}
	socket := &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: twice}}
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	for name, got := range map[string]*Cluster{
		"a body by OPTIONS":    Translate("web", nil, a, []*corev3.HealthCheck{check(t, `http_health_check {path: "/" method: OPTIONS send {text: "00"}}`)}, Options{}),
		"a cipher suite twice": Translate("web", &clusterv3.Cluster{TransportSocket: socket}, a, []*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, Options{}),
	} {
		if len(got.Endpoints) != 1 {
			t.Errorf("%s is set aside: %+v", name, got.Excluded)
		}
	}
}

// TestEndpointsAreSentTheNameOutside: hdsd's own name of a cluster is for its checkers alone.
func TestEndpointsAreSentTheNameOutside(t *testing.T) {
	for _, text := range []string{`http_health_check {path: "/"}`, `grpc_health_check {}`} {
		c := Translate("web#2", &clusterv3.Cluster{Name: "web"}, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`), []*corev3.HealthCheck{check(t, text)}, Options{})
		if got := c.Checks()[0]; cmp.Or(got.GetHttpHealthCheck().GetHost(), got.GetGrpcHealthCheck().GetAuthority()) != "web" {
			t.Errorf("%s: the checks are %v", text, got)
		}
		if got := specifierOf(c).Message().GetClusterHealthChecks()[0].GetClusterName(); !strings.HasPrefix(got, "web#2") {
			t.Errorf("checkers report by %q", got)
		}
	}
}

// TestNoTwoClustersHaveOneNameOnTheWire, although a name may end as one with a hash does.
func TestNoTwoClustersHaveOneNameOnTheWire(t *testing.T) {
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	nameOf := func(name, text string) string {
		c := Translate(name, nil, a, []*corev3.HealthCheck{check(t, text)}, Options{})
		return specifierOf(c).Message().GetClusterHealthChecks()[0].GetClusterName()
	}
	taken := nameOf("web", `grpc_health_check {authority: "a"}`)
	if taken == "web" {
		t.Fatal("it has no hash")
	}
	if other := nameOf(taken, `http_health_check {path: "/"}`); other == taken {
		t.Errorf("two clusters are called %q", other)
	}
}
