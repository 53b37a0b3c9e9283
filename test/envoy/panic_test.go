package envoy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy/rules"
	real "hdsd/test/upstream"
)

// panicCase is a cluster of endpoints, by priority. Each is a letter: h(ealthy), n(othing said),
// D(egraded), u(nhealthy), t(imeout) or d(raining); a digit behind it is its weight.
type panicCase struct {
	fields     string // of the Cluster
	priorities []string
}

var panicCases = []panicCase{
	{"", []string{"huu"}},
	{"", []string{"nuu"}},
	{"", []string{"htt"}},
	{"", []string{"hu"}},
	{"", []string{"hhu"}},
	{"", []string{"dddh"}},
	{"", []string{"dddu"}},
	{"", []string{"ddd"}},
	{"", []string{"Duu"}},
	{"", []string{"Du"}},
	{"", []string{"Dhuuu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 0}}", []string{"huu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 0}}", []string{"uuu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 33}}", []string{"huu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 33.9}}", []string{"huu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 34}}", []string{"huu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 100}}", []string{"hhhu"}},
	{"common_lb_config: {healthy_panic_threshold: {value: 100}}", []string{"hhu"}},
	{"", []string{"huu", "hhh"}},
	{"", []string{"huu", "huu"}},
	{"", []string{"hhu", "uuu"}},
	{"", []string{"hhu", "huuuu"}},
	{"load_assignment: {policy: {overprovisioning_factor: {value: 100}}}", []string{"hhu", "huuuu"}},
	{"load_assignment: {policy: {overprovisioning_factor: {value: 100}}}", []string{"hhu"}},
	{"load_assignment: {policy: {overprovisioning_factor: {value: 300}}}", []string{"huu"}},
	{"", []string{"uuu", "dd"}},
	{"", []string{"dd", "hh"}},
	{"", []string{"h9u1u1"}},
	{"load_assignment: {policy: {weighted_priority_health: true}}", []string{"h9u1u1"}},
	{"load_assignment: {policy: {weighted_priority_health: true}}", []string{"h1h1u9"}},
	{"load_assignment: {policy: {weighted_priority_health: true}}", []string{"h1u5u5"}},
	{"common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}", []string{"huu"}},
	{"common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}", []string{"hu"}},
	{"lb_policy: MAGLEV common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}", []string{"huu"}},
}

var panicHealth = map[byte]corev3.HealthStatus{
	'h': corev3.HealthStatus_HEALTHY, 'n': corev3.HealthStatus_UNKNOWN, 'D': corev3.HealthStatus_DEGRADED,
	'u': corev3.HealthStatus_UNHEALTHY, 't': corev3.HealthStatus_TIMEOUT, 'd': corev3.HealthStatus_DRAINING,
}

// cluster makes the case a cluster, whose endpoints are 127.NUMBER.PRIORITY.INDEX, and counts
// these.
func (c *panicCase) cluster(t *testing.T, number int, port uint32) (*clusterv3.Cluster, []rules.Hosts) {
	t.Helper()
	k := &clusterv3.Cluster{}
	if err := prototext.Unmarshal([]byte(c.fields), k); err != nil {
		t.Fatal(err)
	}
	if k.LoadAssignment == nil {
		k.LoadAssignment = &endpointv3.ClusterLoadAssignment{}
	}
	k.Name, k.LoadAssignment.ClusterName = Named(number), Named(number)
	hosts := make([]rules.Hosts, len(c.priorities))
	for priority, letters := range c.priorities {
		group := &endpointv3.LocalityLbEndpoints{Priority: uint32(priority)}
		for i := 0; i < len(letters); i++ {
			status, weight := panicHealth[letters[i]], uint32(1)
			if i+1 < len(letters) && letters[i+1] >= '0' && letters[i+1] <= '9' {
				i++
				weight = uint32(letters[i] - '0')
			}
			hosts[priority].Add(int32(status), weight, 1)
			address := fmt.Sprintf("127.%d.%d.%d:%d", number+1, priority, len(group.LbEndpoints)+1, port)
			group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpointOf(address)},
				HealthStatus:   status, LoadBalancingWeight: wrapperspb.UInt32(weight),
			})
		}
		k.LoadAssignment.Endpoints = append(k.LoadAssignment.Endpoints, group)
	}
	return k, hosts
}

const panicListener = `
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster_header: x-cluster}}]}]}
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`

// TestPanic holds the arithmetic of envoy/rules against what an Envoy does: which priorities'
// endpoints get traffic although they are down or drain, and whether it counts itself in panic.
func TestPanic(t *testing.T) {
	server, err := real.Start(t.Context(), real.Options{Address: "0.0.0.0:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	var clusters []string
	hosts, states := make([][]rules.Hosts, len(panicCases)), make([]rules.PanicRules, len(panicCases))
	for i := range panicCases {
		k, counted := panicCases[i].cluster(t, i, server.Port())
		text, err := protojson.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		clusters, hosts[i], states[i] = append(clusters, string(text)), counted, rules.PanicRulesOf(k, k.GetLoadAssignment())
	}
	listen := FreeAddress(t)
	_, port, _ := strings.Cut(listen, ":")
	p := Start(t, "", "panic", []byte("admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstatic_resources:\n  clusters: ["+strings.Join(clusters, ",\n    ")+"]"+fmt.Sprintf(panicListener, port)))
	Eventually(t, patience, "the Envoy to listen", func() bool {
		answer, err := http.Get("http://" + listen)
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})

	const requests = 200
	var wg sync.WaitGroup
	for i := range panicCases {
		wg.Go(func() {
			for range requests {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listen, nil)
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("X-Cluster", Named(i))
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				answer.Body.Close()
			}
		})
	}
	wg.Wait()

	panics, served := p.Stats(t, `\.lb_healthy_panic$`), servedDown(t, p)
	for i := range panicCases {
		c, want := &panicCases[i], states[i].Panics(hosts[i])
		if counts := panics["cluster."+Named(i)+".lb_healthy_panic"] > 0; counts != (len(want) > 0) {
			t.Errorf("%+v: the Envoy counts itself in panic: %t, want %v", *c, counts, want)
		}
		if states[i].Fails {
			want = nil // it serves nothing instead
		}
		if got := served[Named(i)]; !slices.Equal(got, want) {
			t.Errorf("%+v: endpoints of the priorities %v got traffic although they are not healthy, want %v", *c, got, want)
		}
	}
}

// servedDown returns the priorities in which endpoints got requests that are neither healthy nor
// degraded, by cluster.
func servedDown(t *testing.T, p *Process) map[string][]int {
	t.Helper()
	body, err := p.Get("/clusters?format=json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Clusters []struct {
			Name  string `json:"name"`
			Hosts []struct {
				Priority int `json:"priority"`
				Stats    []struct {
					Name  string      `json:"name"`
					Value json.Number `json:"value"`
				} `json:"stats"`
				Health struct {
					EDS string `json:"eds_health_status"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	served := map[string][]int{}
	for _, k := range answer.Clusters {
		for _, h := range k.Hosts {
			for _, s := range h.Stats {
				down := h.Health.EDS == "UNHEALTHY" || h.Health.EDS == "DRAINING"
				if down && s.Name == "rq_total" && s.Value != "" && s.Value != "0" && !slices.Contains(served[k.Name], h.Priority) {
					served[k.Name] = append(served[k.Name], h.Priority)
				}
			}
		}
		slices.Sort(served[k.Name])
	}
	return served
}
