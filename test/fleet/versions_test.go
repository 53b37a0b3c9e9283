package fleet

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// pair is two endpoints of a kind, the second of which is made to fail.
type pair struct {
	name, check string
	addresses   []string
	more        []string // of the cluster
	fail        func()
	checkers    []string // who is able to check it
}

func (p *pair) yaml() string { return StaticCluster(p.name, p.check, p.addresses, p.more...) }

func checkYAML(checker string) string {
	return "{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, " + checker + "}"
}

func TestEnvoysOfThreeReleasesInOneFleet(t *testing.T) {
	t.Parallel()
	const oldest, older, newest = "envoy-1.36.4", "envoy-1.38.3", "envoy-1.40.0"
	everyone := []string{oldest, older, newest}
	pairs := []pair{httpPair(t, "http", everyone), tcpPair(t, everyone), tlsPair(t, everyone), grpcPair(t, []string{older, newest}), redisPair(t, []string{newest})}
	var clusters []string
	for i := range pairs {
		clusters = append(clusters, pairs[i].yaml())
	}
	c := Prepare(t, ClusterFile(clusters...), FastReports)
	c.Start()
	var fleet []*envoy.Process
	for _, id := range everyone {
		fleet = append(fleet, envoy.StartChecker(t, envoy.Checker{ID: id, HDS: c.GRPC, Version: strings.TrimPrefix(id, "envoy-")}))
	}
	for i := range pairs {
		p := &pairs[i]
		c.AwaitAllHealthy(p.name, p.addresses, nil)
		p.fail()
		c.AwaitHealth(p.name, p.addresses[1], "UNHEALTHY")
	}
	for i := range pairs {
		p := &pairs[i]
		for j, want := range []string{"HEALTHY", "UNHEALTHY"} {
			envoy.Eventually(t, Patience, fmt.Sprintf("%s %d to be found %s by %v", p.name, j, want, p.checkers), func() bool {
				e := c.Endpoints(p.name)[p.addresses[j]]
				return e.Health == want && slices.Equal(voters(e, want), p.checkers)
			})
		}
	}
	checkCodes(t, c.Endpoints("http")[pairs[0].addresses[1]], oldest)
	c.AwaitSynced(len(fleet))
	for _, p := range fleet {
		k := c.Checkers()[p.ID]
		if !p.Alive() || k.Version != strings.Replace(p.ID, "-", "/", 1) {
			t.Errorf("%s lives: %v; it is %+v", p.ID, p.Alive(), k)
		}
		for ability, able := range map[string]bool{"HTTP": true, "TCP": true, "GRPC": p.ID != oldest, "REDIS": p.ID == newest} {
			if slices.Contains(k.Abilities, ability) != able {
				t.Errorf("%s: able to %s is %v", p.ID, ability, !able)
			}
		}
	}
}

// voters are the checkers that vote so, sorted.
func voters(e Endpoint, status string) []string {
	var all []string
	for _, o := range e.Observations {
		if o.Status == status {
			all = append(all, o.Checker)
		}
	}
	slices.Sort(all)
	return all
}

// checkCodes wants a code from each but the one whose release reports none.
func checkCodes(t *testing.T, e Endpoint, without string) {
	t.Helper()
	for _, o := range e.Observations {
		want := 503
		if o.Checker == without {
			want = 0
		}
		if o.HTTPStatusCode != want {
			t.Errorf("%s reports code %d, want %d", o.Checker, o.HTTPStatusCode, want)
		}
	}
}

func upstreamPair(t *testing.T, name, check string, o upstream.Options, failure upstream.Behaviour, checkers []string) pair {
	t.Helper()
	ups := Upstreams(t, 2, o)
	return pair{name: name, check: checkYAML(check), addresses: Addresses(ups), checkers: checkers, fail: func() { set(t, ups[1], failure) }}
}

func httpPair(t *testing.T, name string, checkers []string) pair {
	t.Helper()
	return upstreamPair(t, name, "http_health_check: {path: /healthz}", upstream.Options{}, upstream.Status(503), checkers)
}

func tcpPair(t *testing.T, checkers []string) pair {
	t.Helper()
	return upstreamPair(t, "tcp", "tcp_health_check: {}", upstream.Options{Protocol: upstream.TCP}, upstream.Refuse(), checkers)
}

func redisPair(t *testing.T, checkers []string) pair {
	t.Helper()
	pong := upstream.Options{Protocol: upstream.TCP, Behaviour: upstream.Behaviour{Raw: []byte("+PONG\r\n")}}
	return upstreamPair(t, "redis", `custom_health_check: {name: envoy.health_checkers.redis, typed_config: {"@type": type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis}}`,
		pong, upstream.Behaviour{Raw: []byte("-LOADING not yet\r\n")}, checkers)
}

// tlsPair is one server with one certificate at two addresses.
func tlsPair(t *testing.T, checkers []string) pair {
	t.Helper()
	secure := Upstreams(t, 1, upstream.Options{Protocol: upstream.HTTPS, Address: "0.0.0.0:0"})[0]
	ca := strings.ReplaceAll(strings.TrimSpace(string(secure.CA())), "\n", `\n`)
	return pair{
		name: "tls", check: checkYAML("http_health_check: {path: /healthz}"), checkers: checkers,
		addresses: []string{fmt.Sprintf("127.0.0.1:%d", secure.Port()), fmt.Sprintf("127.0.0.2:%d", secure.Port())},
		more: []string{`transport_socket: {name: envoy.transport_sockets.tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, ` +
			`common_tls_context: {validation_context: {trusted_ca: {inline_string: "` + ca + `\n"}}}}}`},
		fail: func() { secure.SetAt("127.0.0.2", upstream.Status(503)) },
	}
}

func grpcPair(t *testing.T, checkers []string) pair {
	t.Helper()
	p := pair{name: "grpc", check: checkYAML("grpc_health_check: {}"), checkers: checkers}
	var last *health.Server
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		last = health.NewServer()
		grpc_health_v1.RegisterHealthServer(server, last)
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(listener) }() // ends with Stop
		t.Cleanup(func() { server.Stop(); <-done })
		p.addresses = append(p.addresses, listener.Addr().String())
	}
	p.fail = func() { last.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING) }
	return p
}
