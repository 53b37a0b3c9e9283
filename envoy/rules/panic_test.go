package rules

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/prototext"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/cluster_provided/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
)

// hostsOf counts endpoints, each a letter: h(ealthy), D(egraded), u(nhealthy), d(raining).
func hostsOf(priorities ...string) []Hosts {
	all := make([]Hosts, len(priorities))
	for i, letters := range priorities {
		for _, letter := range letters {
			all[i].Add(int32(map[rune]corev3.HealthStatus{
				'h': corev3.HealthStatus_HEALTHY, 'D': corev3.HealthStatus_DEGRADED, 'u': corev3.HealthStatus_UNHEALTHY, 'd': corev3.HealthStatus_DRAINING,
			}[letter]), 1, 1)
		}
	}
	return all
}

// TestPanicIsExplained; test/envoy holds the arithmetic against a real Envoy.
func TestPanicIsExplained(t *testing.T) {
	half := PanicRulesOf(&clusterv3.Cluster{}, nil)
	fails, assumed := half, PanicRulesOf(nil, nil)
	fails.Fails = true
	for _, c := range []struct {
		rules PanicRules
		hosts []Hosts
		would bool
		want  string
	}{
		{half, hostsOf("huu"), false, "Envoy sends traffic to all 3 endpoints: 33 % healthy is below its threshold of 50 %"},
		{half, hostsOf("huu"), true, "Envoy would send traffic to all 3 endpoints: 33 % healthy is below its threshold of 50 %"},
		{half, hostsOf("hu"), false, ""},
		{half, hostsOf("u"), false, "Envoy sends traffic to the only endpoint: 0 % healthy is below its threshold of 50 %"},
		{half, hostsOf("Duu"), false, "Envoy sends traffic to all 3 endpoints: 33 % healthy or degraded is below its threshold of 50 %"},
		{half, hostsOf("dduuh"), false, "Envoy sends traffic to all 5 endpoints: 33 % healthy (without 2 that drain) is below its threshold of 50 %"},
		{assumed, hostsOf("dd"), true, "Envoy would send traffic to all 2 endpoints: 0 % healthy (all drain) is below Envoy's default threshold of 50 %, since no source has the cluster itself"},
		{fails, hostsOf("huu"), false, "Envoy fails all requests to 3 endpoints: 33 % healthy is below its threshold of 50 %"},
		{fails, hostsOf("huu"), true, "Envoy would fail all requests to 3 endpoints: 33 % healthy is below its threshold of 50 %"},
		{half, hostsOf("huu", "uu"), false, "Envoy sends traffic to all 3 endpoints of priority 0: 33 % healthy is below its threshold of 50 %; to all 2 endpoints of priority 1: 0 % healthy"},
		{half, hostsOf("u", "u", "u", "u", "u"), false, "Envoy sends traffic to the only endpoint of priority 0: 0 % healthy is below its threshold of 50 %; " +
			"to the only endpoint of priority 1: 0 % healthy; to the only endpoint of priority 2: 0 % healthy; and to those of 2 more priorities"},
	} {
		if got := c.rules.Explain(c.hosts, c.would); got != c.want {
			t.Errorf("%+v: %q, want %q", c.hosts, got, c.want)
		}
	}
}

func TestPanicRules(t *testing.T) {
	for text, want := range map[string]PanicRules{
		"": {Threshold: 50},
		"common_lb_config: {healthy_panic_threshold: {value: 0}}":                                   {},
		"common_lb_config: {healthy_panic_threshold: {value: 33.9}}":                                {Threshold: 33},
		"lb_policy: CLUSTER_PROVIDED":                                                               {},
		"common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}":                   {Threshold: 50, Fails: true},
		"lb_policy: MAGLEV common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}": {Threshold: 50},
		"load_balancing_policy: {policies: {typed_extension_config: {typed_config: {[type.googleapis.com/envoy.extensions.load_balancing_policies.cluster_provided.v3.ClusterProvided]: {}}}}}": {},
		"load_balancing_policy: {policies: {typed_extension_config: {typed_config: {[type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin]: {}}}}}":           {Threshold: 50},
		"load_balancing_policy: {policies: {typed_extension_config: {typed_config: {[type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin]: " +
			"{locality_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}}}}}}": {Threshold: 50, Fails: true},
	} {
		c := &clusterv3.Cluster{}
		if err := prototext.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		want.overprovisioning = 140
		if got := PanicRulesOf(c, nil); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	a := &endpointv3.ClusterLoadAssignment{}
	if err := prototext.Unmarshal([]byte("policy: {overprovisioning_factor: {value: 200} weighted_priority_health: true}"), a); err != nil {
		t.Fatal(err)
	}
	want := PanicRules{Threshold: 50, Assumed: true, Weighted: true, overprovisioning: 200}
	if got := PanicRulesOf(nil, a); got != want {
		t.Errorf("%s: %+v, want %+v", prototext.Format(a), got, want)
	}
}

// TestHostsGiveBackWhatTheyTook counts endpoints that change and go.
func TestHostsGiveBackWhatTheyTook(t *testing.T) {
	var h Hosts
	for status := range corev3.HealthStatus_name {
		h.Add(status, 7, 2)
		h.Add(status, 7, -2)
	}
	if h != (Hosts{}) {
		t.Errorf("what is left: %+v", h)
	}
}

// TestLargeWeightsDoNotOverflow, nor does a large overprovisioning factor.
func TestLargeWeightsDoNotOverflow(t *testing.T) {
	var h Hosts
	h.Add(int32(corev3.HealthStatus_HEALTHY), 1<<31, 4)
	h.Add(int32(corev3.HealthStatus_UNHEALTHY), 1, 5)
	r := PanicRules{Threshold: 50, Weighted: true, overprovisioning: 1 << 31}
	if panics := r.Panics([]Hosts{h}); len(panics) > 0 {
		t.Errorf("nearly all of the weight is healthy, and priorities %v are in panic", panics)
	}
	r.overprovisioning = 1 << 32 / 50
	h = Hosts{}
	h.Add(int32(corev3.HealthStatus_DEGRADED), 1, 1)
	h.Add(int32(corev3.HealthStatus_UNHEALTHY), 1<<32-1, 5)
	if panics := r.Panics([]Hosts{h}); len(panics) != 1 {
		t.Errorf("nearly nothing of the weight is healthy, and priorities %v are in panic", panics)
	}
}
