package proxyless_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/test/fleet"
	"hdsd/test/proxyless"
)

// languages are those of the clients that are tested: all with PROXYLESS=all, which needs a JDK,
// Maven and node, else those that other tests need anyway.
func languages() []proxyless.Language {
	if os.Getenv("PROXYLESS") == "all" {
		return proxyless.Languages()
	}
	return []proxyless.Language{proxyless.Golang, proxyless.Python}
}

// forEach runs a test with the client of each language, one after the other.
func forEach(t *testing.T, test func(*testing.T, proxyless.Language)) {
	for _, language := range languages() {
		t.Run(string(language), func(t *testing.T) { test(t, language) })
	}
}

// endpoint is an LbEndpoint in JSON.
func endpoint(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf(`{"endpoint": {"address": {"socket_address": {"address": %q, "port_value": %s}}}}`, host, port)
}

func parse[M proto.Message](t *testing.T, into M, text string) M {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return into
}

const (
	byEDS  = `"type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}`
	checks = `"health_checks": [{"timeout": "1s", "interval": "0.25s", "unhealthy_threshold": 2, "healthy_threshold": 1, "grpc_health_check": {}}]`
)

// reach tells of a call whether a server answered it.
func reach(b *proxyless.Backend) func(proxyless.Call) bool {
	return func(c proxyless.Call) bool { return proxyless.Answered(c) && c.Peer == b.Address }
}

// awaitBoth waits until calls of a target reach each of two servers.
func awaitBoth(p *proxyless.Program, target string, one, other *proxyless.Backend) {
	for _, b := range []*proxyless.Backend{one, other} {
		p.Await("a call that reaches "+b.Address, 1, reach(b), target)
	}
}

// TestClientsOfHdsd: gRPC's own xDS clients have listeners of a control plane, and by the names in
// these clusters and endpoints of hdsd. Its localities have no weights, and one has no name. Calls
// leave a failing endpoint and come back. Without an assignment they fail at once.
func TestClientsOfHdsd(t *testing.T) {
	t.Parallel()
	const authority = "xdstp://hdsd/envoy.config.cluster.v3.Cluster/"
	one, other := proxyless.NewBackend(t), proxyless.NewBackend(t)
	c := fleet.Prepare(t, fmt.Sprintf(`{"resources": [
		{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "shop", "type": "STATIC", %s,
		 "load_assignment": {"cluster_name": "shop", "endpoints": [{"lb_endpoints": [%s]}, {"locality": {"zone": "b"}, "lb_endpoints": [%s]}]}},
		{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "none", %s}]}`,
		checks, endpoint(one.Address), endpoint(other.Address), byEDS), fleet.FastReports+"data_planes: {xdstp_authority: hdsd}\n")
	c.Start()
	fleet.Checkers(t, c, 1)
	plane := proxyless.NewPlane(t)
	plane.Route(map[string]string{"shop": authority + "shop", "none": authority + "none"})
	forEach(t, func(t *testing.T, language proxyless.Language) {
		p := proxyless.Start(t, language, proxyless.Bootstrap{
			Node: proxyless.Node{ID: "shop-" + string(language)}, Servers: []proxyless.Server{{Address: plane.Address}},
			Authorities: map[string]proxyless.Authority{"hdsd": {Servers: []proxyless.Server{{Address: c.GRPC}}}},
		}, proxyless.Calls{Deadline: 10 * time.Second, Pause: 20 * time.Millisecond, Targets: []string{"xds:///shop", "xds:///none"}})
		awaitBoth(p, "xds:///shop", one, other)
		one.Fail()
		p.Await("no call at a failing endpoint", 20, reach(other), "xds:///shop")
		one.Recover()
		awaitBoth(p, "xds:///shop", one, other)
		p.Await("calls to fail at once without an assignment", 3, func(c proxyless.Call) bool {
			return strings.HasPrefix(strings.ToUpper(c.Error), "UNAVAILABLE") && c.Milliseconds < 5000
		}, "xds:///none")
	})
}

// TestClientsBehindTheRelayOverAnOutage: a process has three targets, for each of which most
// clients have a stream of their own. No call fails while the control plane is away, and after it
// is back.
func TestClientsBehindTheRelayOverAnOutage(t *testing.T) {
	t.Parallel()
	plane := proxyless.NewPlane(t)
	c := fleet.Prepare(t, "resources: []\n", "")
	c.RelayTo(plane.Address, "")
	c.Start()
	fleet.Checkers(t, c, 1)
	services, targets := map[string]proxyless.Service{}, []string{}
	for _, name := range []string{"a", "b", "c"} {
		targets = append(targets, "xds:///"+name)
		services[name] = proxyless.Service{
			Cluster: parse(t, &clusterv3.Cluster{}, fmt.Sprintf(`{"name": %q, %s, %s}`, name, byEDS, checks)),
			Assignment: parse(t, &endpointv3.ClusterLoadAssignment{}, fmt.Sprintf(
				`{"cluster_name": %q, "endpoints": [{"locality": {"zone": "a"}, "load_balancing_weight": 1, "lb_endpoints": [%s]}]}`,
				name, endpoint(proxyless.NewBackend(t).Address))),
		}
	}
	plane.Say(services)
	forEach(t, func(t *testing.T, language proxyless.Language) {
		p := proxyless.Start(t, language, proxyless.Bootstrap{
			Node: proxyless.Node{ID: "shop-" + string(language)}, Servers: []proxyless.Server{{Address: c.GRPC}},
		}, proxyless.Calls{Deadline: 5 * time.Second, Pause: 50 * time.Millisecond, Targets: targets})
		p.Await("answers of all targets", 20, proxyless.Answered, targets...)
		before := len(p.Made())
		made := func(proxyless.Call) bool { return true }
		for range 3 {
			plane.Leave()
			p.Await("calls while the control plane is away", 80, made, targets...)
			plane.Come()
			p.Await("calls after it is back", 40, made, targets...)
		}
		failed := 0
		calls := p.Made()[before:]
		for _, c := range calls {
			if c.Error != "" {
				if failed++; failed == 1 {
					t.Errorf("a call failed: %+v", c)
				}
			}
		}
		t.Logf("%s: %d of %d calls failed over three outages of some 4 s of the control plane", language, failed, len(calls))
	})
}
