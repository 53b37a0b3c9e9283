package names

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/source"
)

const strictText = `
	type: STRICT_DNS dns_lookup_family: V4_ONLY health_checks {timeout {seconds: 1}}
	load_assignment {cluster_name: "x" policy {overprovisioning_factor {value: 150}} endpoints {
		locality {zone: "a"} load_balancing_weight {value: 3} priority: 1
		lb_endpoints {load_balancing_weight {value: 7} endpoint {address {socket_address {address: "Web.test" port_value: 80}}}}
		lb_endpoints {endpoint {hostname: "own" address {socket_address {address: "web.test" port_value: 81}}}}
		lb_endpoints {endpoint {address {socket_address {address: "10.0.0.9" port_value: 80}}}}
	}}`

// answers are what is known, by name.
type answers map[string]Answer

func (a answers) of(q Question) Answer { return a[q.Host] }

func setOf(clusters ...*source.Cluster) *source.Set {
	return &source.Set{Source: "local", Clusters: clusters}
}

// TestNamesBecomeEndpoints: everything but the addresses is as the source gave it.
func TestNamesBecomeEndpoints(t *testing.T) {
	from := cluster(t, "web", strictText)
	before := prototext.Format(from.Message())
	r := &Rewriter{}
	set := r.Apply(setOf(from), answers{"web.test": {Addresses: addresses("10.0.0.1", "10.0.0.2"), Known: true}}.of)
	got := set.Clusters[0]
	want := &endpointv3.ClusterLoadAssignment{}
	if err := prototext.Unmarshal([]byte(`cluster_name: "web" policy {overprovisioning_factor {value: 150}} endpoints {
		locality {zone: "a"} load_balancing_weight {value: 3} priority: 1
		lb_endpoints {load_balancing_weight {value: 7} endpoint {hostname: "Web.test" address {socket_address {address: "10.0.0.1" port_value: 80}}}}
		lb_endpoints {load_balancing_weight {value: 7} endpoint {hostname: "Web.test" address {socket_address {address: "10.0.0.2" port_value: 80}}}}
		lb_endpoints {endpoint {hostname: "own" address {socket_address {address: "10.0.0.1" port_value: 81}}}}
		lb_endpoints {endpoint {hostname: "own" address {socket_address {address: "10.0.0.2" port_value: 81}}}}
		lb_endpoints {endpoint {address {socket_address {address: "10.0.0.9" port_value: 80}}}}
	}`), want); err != nil {
		t.Fatal(err)
	}
	same(t, "endpoints", got.Assignment.Message(), want)
	config := &clusterv3.Cluster{}
	if err := prototext.Unmarshal([]byte(`name: "web" type: EDS eds_cluster_config {} dns_lookup_family: V4_ONLY health_checks {timeout {seconds: 1}}`), config); err != nil {
		t.Fatal(err)
	}
	same(t, "the cluster", got.Config, config)
	if !got.EDS() || got.Name != "web" || got.ServiceName != "web" || len(got.HealthChecks) != 1 || got.Names != "web.test" || got.File != "a.yaml" {
		t.Errorf("got %+v", got)
	}
	if prototext.Format(from.Message()) != before {
		t.Error("the source's cluster was changed")
	}
}

// TestNamesWithOneAddressHaveTheSumOfTheirWeights, since an Envoy that resolves them sends it
// the traffic of both.
func TestNamesWithOneAddressHaveTheSumOfTheirWeights(t *testing.T) {
	from := cluster(t, "web", `type: STRICT_DNS dns_lookup_family: V4_ONLY load_assignment {cluster_name: "x" endpoints {
		lb_endpoints {endpoint {address {socket_address {address: "a.test" port_value: 80}}}}
		lb_endpoints {load_balancing_weight {value: 4} endpoint {address {socket_address {address: "b.test" port_value: 80}}}}
	}}`)
	got := (&Rewriter{}).Apply(setOf(from), answers{
		"a.test": {Addresses: addresses("10.0.0.1"), Known: true}, "b.test": {Addresses: addresses("10.0.0.1", "10.0.0.2"), Known: true},
	}.of).Clusters[0].Assignment.Message().GetEndpoints()[0].GetLbEndpoints()
	if len(got) != 2 || got[0].GetLoadBalancingWeight().GetValue() != 5 || got[1].GetLoadBalancingWeight().GetValue() != 4 {
		t.Errorf("got %v", got)
	}
}

// TestAnExtensionWithNames: DnsCluster has the settings of both types.
func TestAnExtensionWithNames(t *testing.T) {
	from := cluster(t, "web", `cluster_type {name: "dns" typed_config {[type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster] {
			dns_refresh_rate {seconds: 60} dns_failure_refresh_rate {base_interval {seconds: 2} max_interval {seconds: 9}} respect_dns_ttl: true
			dns_jitter {seconds: 1} dns_lookup_family: V6_ONLY dns_min_refresh_rate {seconds: 7}}}}
		load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "web.test" port_value: 80}}}}}}`)
	want := Question{
		Host: "web.test", Family: clusterv3.Cluster_V6_ONLY, Refresh: time.Minute, Jitter: time.Second, RespectTTL: true, LeastTTL: 7 * time.Second,
		FailureBase: 2 * time.Second, FailureMax: 9 * time.Second, Retain: true,
	}
	known := answers{"web.test": {Addresses: addresses("::1", "::2"), Known: true}}
	take := func() *source.Cluster {
		set := (&Rewriter{}).Apply(setOf(from), func(q Question) Answer {
			if q != want {
				t.Errorf("asked %+v, want %+v", q, want)
			}
			return known.of(q)
		})
		return set.Clusters[0]
	}
	if got := take(); !got.EDS() || got.Config.GetClusterType() != nil || len(got.Assignment.Message().GetEndpoints()[0].GetLbEndpoints()) != 2 {
		t.Errorf("got %v, %v", got.Config, got.Assignment.Message())
	}

	settings := &dnsv3.DnsCluster{AllAddressesInSingleEndpoint: true}
	packed, err := anypb.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	from.Config.GetClusterType().TypedConfig = packed
	want = Question{Host: "web.test", Refresh: defaultRefresh, Keep: true}
	if got := take(); len(got.Assignment.Message().GetEndpoints()[0].GetLbEndpoints()) != 1 {
		t.Errorf("in a single endpoint: got %v", got.Assignment.Message())
	}
}

// TestALogicalClusterHasOneAddress, the first, for as long as DNS has it.
func TestALogicalClusterHasOneAddress(t *testing.T) {
	from := cluster(t, "web", `type: LOGICAL_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "web.test" port_value: 80}}}}}}`)
	r := &Rewriter{}
	var inUse []netip.Addr
	for _, one := range []struct{ says, want string }{
		{"10.0.0.1 10.0.0.2", "10.0.0.1"}, {"10.0.0.2 10.0.0.1", "10.0.0.1"}, {"10.0.0.3 10.0.0.2 10.0.0.1", "10.0.0.1"}, {"10.0.0.3 10.0.0.2", "10.0.0.3"},
	} {
		inUse = successor(inUse, addresses(strings.Fields(one.says)...))
		set := r.Apply(setOf(from), answers{"web.test": {Addresses: inUse, Known: true}}.of)
		all := set.Clusters[0].Assignment.Message().GetEndpoints()[0].GetLbEndpoints()
		if len(all) != 1 || all[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress() != one.want || all[0].GetEndpoint().GetHostname() != "web.test" {
			t.Errorf("DNS says %s: got %v, want %s", one.says, all, one.want)
		}
	}
}

// TestWhatIsLeftAlone goes on as it came, by the same pointer.
func TestWhatIsLeftAlone(t *testing.T) {
	name := `lb_endpoints {endpoint {address {socket_address {address: "web.test" port_value: 80}}}}`
	for what, text := range map[string]string{
		"addresses only":    `type: STRICT_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "10.0.0.1" port_value: 80}}}}}}`,
		"STATIC":            `type: STATIC load_assignment {endpoints {` + name + `}}`,
		"EDS":               `type: EDS load_assignment {endpoints {` + name + `}}`,
		"an extension":      `cluster_type {name: "other" typed_config {[type.googleapis.com/google.protobuf.Empty] {}}} load_assignment {endpoints {` + name + `}}`,
		"another resolver":  `type: STRICT_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "web.test" resolver_name: "x" port_value: 80}}}}}}`,
		"a named port":      `type: STRICT_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "web.test" named_port: "http"}}}}}}`,
		"more of a name":    `type: STRICT_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "web.test" port_value: 80}} additional_addresses {address {socket_address {address: "more.test" port_value: 80}}}}}}}`,
		"what is refused":   `cluster_type {name: "dns" typed_config {[type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster] {dns_refresh_rate {}}}} load_assignment {endpoints {` + name + `}}`,
		"two of one":        `cluster_type {name: "dns" typed_config {[type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster] {all_addresses_in_single_endpoint: true}}} load_assignment {endpoints {` + name + name + `}}`,
		"no endpoints":      `type: STRICT_DNS`,
		"a pipe in the set": `type: STRICT_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {pipe {path: "/x"}}}}}}`,
	} {
		set := setOf(cluster(t, "web", text), &source.Cluster{Name: "lone", Lone: true, Assignment: source.EncodeAssignment(&endpointv3.ClusterLoadAssignment{})})
		if got := (&Rewriter{}).Apply(set, func(Question) Answer { t.Errorf("%s: a name is resolved", what); return Answer{} }); got != set {
			t.Errorf("%s: the set was changed to %v", what, got.Clusters[0].Config)
		}
	}
	rejected := cluster(t, "web", strictText)
	rejected.Rejected = "wrong"
	if set := setOf(rejected); (&Rewriter{}).Apply(set, answers{}.of) != set {
		t.Error("a rejected cluster was changed")
	}
}

// TestClustersWaitForTheirNames, once; then those that change keep their last version.
func TestClustersWaitForTheirNames(t *testing.T) {
	web := cluster(t, "web", strictText)
	plain := cluster(t, "plain", `type: STATIC`)
	r := &Rewriter{}
	known := answers{}
	set := r.Apply(setOf(plain, web), known.of)
	if len(set.Clusters) != 1 || set.Clusters[0] != plain || !set.Awaited || r.Complete {
		t.Fatalf("before: %+v", set)
	}
	known["web.test"] = Answer{Known: true, Problem: "broken"}
	set = r.Apply(setOf(plain, web), known.of)
	if len(set.Clusters) != 2 || set.Awaited || !r.Complete || len(set.Problems) != 1 ||
		set.Problems[0].String() != `web: its name "web.test" cannot be resolved: broken` {
		t.Fatalf("a failure counts as known: %+v", set)
	}
	known["web.test"] = Answer{Known: true, Addresses: addresses("10.0.0.1"), Problem: "broken again"}
	set = r.Apply(setOf(plain, web), known.of)
	if !strings.Contains(set.Problems[0].String(), "broken again (its last addresses stay in use)") {
		t.Errorf("problems: %v", set.Problems)
	}
	known["web.test"] = Answer{Known: true, Addresses: addresses("10.0.0.1")}
	set = r.Apply(setOf(plain, web), known.of)
	if again := r.Apply(setOf(plain, web), known.of); again != set {
		t.Error("the same is another set")
	}
	changed := cluster(t, "web", strings.ReplaceAll(strictText, "web.test", "new.test"))
	next := r.Apply(setOf(plain, changed, cluster(t, "zzz", strictText)), known.of)
	if next.Clusters[1] != set.Clusters[1] || next.Awaited || len(next.Clusters) != 3 {
		t.Errorf("a changed cluster, and a new one: %+v", next)
	}
	known["new.test"] = Answer{Known: true, Addresses: addresses("10.0.0.5")}
	next = r.Apply(setOf(plain, changed), known.of)
	if len(next.Clusters) != 2 || next.Clusters[1] == set.Clusters[1] {
		t.Errorf("resolved: %+v", next)
	}
}

// TestExample needs nobody to ask.
func TestExample(t *testing.T) {
	from := setOf(cluster(t, "plain", `type: STATIC`), cluster(t, "web", strictText))
	got, originals := Example(from)
	if got.Awaited || len(got.Clusters) != 2 || originals[got.Clusters[1].Assignment] != from.Clusters[1].Assignment ||
		len(got.Clusters[1].Assignment.Message().GetEndpoints()[0].GetLbEndpoints()) != 3 {
		t.Errorf("got %+v, %v", got.Clusters[1], originals)
	}
}
