package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/envoy"
)

// wireGroup is a check, and what upstreams do that it checks.
type wireGroup struct {
	name    string
	check   func(*base)
	also    func(*base) // another check; nil for none
	good    script      // what passes
	cases   []wireCase
	sockets []*clusterv3.Cluster_TransportSocketMatch
	edit    func(*endpointv3.Endpoint) // nil for none
}

// checks returns the group's checks in a variant, so many times as far apart.
func (g *wireGroup) checks(way func(*base), apart int) (list []*corev3.HealthCheck) {
	timeout := time.Second
	if len(g.sockets) > 0 {
		timeout *= 2 // handshakes cost much where all is done on one machine
	}
	for _, edit := range []func(*base){g.check, g.also} {
		if edit == nil {
			continue
		}
		c := timing()
		c.Timeout, c.Interval = durationpb.New(timeout), durationpb.New(time.Second)
		c.NoTrafficInterval, c.InitialJitter = c.GetInterval(), c.GetInterval()
		c.UnhealthyThreshold = wrapped(2)
		edit(c)
		way(c)
		c.Interval, c.NoTrafficInterval, c.InitialJitter = times(apart, c.Interval), times(apart, c.NoTrafficInterval), times(apart, c.InitialJitter)
		list = append(list, c)
	}
	return list
}

func times(n int, d *durationpb.Duration) *durationpb.Duration {
	return durationpb.New(time.Duration(n) * d.AsDuration())
}

func wrapped(n uint32) *wrapperspb.UInt32Value { return wrapperspb.UInt32(n) }

// variant is a way in which a check is done.
type variant struct {
	name   string
	edit   func(*base)
	column int // in what cases want
}

// variants returns the ways in which a group's check is done. With TLS, making a
// connection for each probe would cost too much.
func (g *wireGroup) variants() []variant {
	plain := variant{"plain", func(*base) {}, 0}
	fresh := variant{"fresh", func(c *base) { c.ReuseConnection = wrapperspb.Bool(false) }, 1}
	patient := variant{"patient", func(c *base) { c.UnhealthyThreshold = wrapped(1 << 30) }, 2}
	if len(g.sockets) > 0 {
		return []variant{plain, patient}
	}
	return []variant{plain, fresh, patient}
}

func wireGroups(t *testing.T) []wireGroup {
	redis := func(name, key string, want func(i int) (want, envoy string), good string) wireGroup {
		g := wireGroup{name: name, check: redisCheckOf(key), good: replies(good)}
		for i, c := range redisCases {
			one := wireCase{name: c.name, script: replies(c.reply)}
			if one.want, one.envoy = want(i); one.envoy == one.want {
				one.envoy = ""
			}
			if one.envoy != "" {
				one.why = "only the first line of a reply is read"
			}
			g.cases = append(g.cases, one)
		}
		return g
	}
	rarely := redisCheckOf("")
	return append([]wireGroup{
		{name: "http2", check: over2Check, good: over2(ok2), cases: http2Cases},
		{name: "grpc", check: grpcCheckOf, good: overGRPC(serving, "grpc-status", "0"), cases: grpcCases},
		{name: "http2-large", good: over2(ok2), cases: largeCases, check: func(c *base) {
			over2Check(c)
			c.Timeout, c.NoTrafficInterval = durationpb.New(5*time.Second), durationpb.New(4*time.Second)
		}},
		{name: "redis-inline", check: redisCheckOf(""), good: replies("+PONG\r\n"), cases: []wireCase{{
			name: "a quote that does not end", script: replies("say \"hello\r\n"), want: "U0 U0 U0", envoy: "U0 U0 H0",
			why: "what is no reply is not told from what is no command either",
		}}},
		redis("redis-ping", "", func(i int) (want, envoy string) { return redisCases[i].ping, redisCases[i].envoyPing }, "+PONG\r\n"),
		redis("redis-exists", "maintenance", func(i int) (want, envoy string) { return redisCases[i].exists, redisCases[i].envoyExists }, ":0\r\n"),
		{
			name: "grpc-named", check: namedGRPCCheck, cases: []wireCase{{name: "another service", script: overGRPC(messageOf(3), "grpc-status", "0"), want: "U0 U0 U0"}},
			good: asks("\x00\x00\x00\x00\x06\x0a\x04shop", sayServing, ":method", "POST", ":scheme", "http", ":path", "/grpc.health.v1.Health/Check", ":authority", "shop.example",
				"te", "trailers", "content-type", "application/grpc", "grpc-timeout", "1000m", "x-from", "100% hdsd", "user-agent", "probe"),
		},
		{
			name: "grpc-hostname", check: namedGRPCCheck, edit: func(e *endpointv3.Endpoint) {
				e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{Hostname: "one.example"}
			},
			good:  asks("\x00\x00\x00\x00\x06\x0a\x04shop", sayServing, ":authority", "one.example"),
			cases: []wireCase{{name: "closes", script: closesAfterSome, want: "U0 U0 H0"}},
		},
		{
			name: "http2-post", check: posting, good: asks("ping", ok2, ":method", "POST", ":path", "/check?full=1", ":authority", "shop.example", "content-length", "4", "x-from", "hdsd"),
			cases: []wireCase{{name: "answers at once", script: over2(func(p *peer2, s uint32) { ok2(p, s); p.WriteRSTStream(s, 0) }), want: "H200 H200 H200"}},
		},
		{
			name: "http2-and-grpc", check: over2Check, also: grpcCheckOf, good: both(200, 1),
			cases: []wireCase{
				{name: "NOT_SERVING", script: both(200, 2), want: "U200 U200 U200"},
				{name: "503", script: both(503, 1), want: "U503 U503 U503"},
			},
		},
		{
			name: "redis-port", check: redisCheckOf(""), good: replies("+PONG\r\n"), edit: func(e *endpointv3.Endpoint) {
				e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: 9}
			},
			cases: []wireCase{{name: "an error", script: replies("-ERR\r\n"), want: "U0 U0 U0"}},
		},
		{
			name: "redis-interval", good: replies("+PONG\r\n"), check: func(c *base) {
				rarely(c)
				c.NoTrafficInterval = durationpb.New(time.Hour) // has no effect, since connections of Redis checks count as traffic
			},
			cases: []wireCase{{name: "an error", script: replies("-ERR\r\n"), want: "U0 U0 U0"}},
		},
	}, newTLSLab(t).groups()...)
}

// TestProtocolsAsEnvoy gives a real Envoy and this checker the same upstreams:
// first all pass, then each does what its case says, then all pass again. What
// both report must be what the case says. A machine that is too busy for all
// these probes in time gets another chance, with few of them.
func TestProtocolsAsEnvoy(t *testing.T) {
	groups := wireGroups(t)
	for _, g := range groups {
		for _, c := range g.cases {
			if (c.envoy == "") != (c.why == "") {
				t.Errorf("%s, %s: a difference without a reason, or a reason without a difference", g.name, c.name)
			}
		}
	}
	for _, try := range []struct {
		apart int
		limit time.Duration // of each phase
	}{{1, 40 * time.Second}, {8, 3 * time.Minute}} {
		var wrong []string
		t.Run(fmt.Sprint("apart ", try.apart), func(t *testing.T) { wrong = compareProtocols(t, groups, try.apart, try.limit) })
		if len(wrong) == 0 {
			return
		}
		t.Log(strings.Join(wrong, "\n"))
	}
	t.Error("not both report what the cases say")
}

// compareProtocols tells what is reported that no case says.
func compareProtocols(t *testing.T, groups []wireGroup, apart int, limit time.Duration) (wrong []string) {
	m := &healthv3.HealthCheckSpecifier{Interval: durationpb.New(time.Second / 2)} // reading more would leave probes too little time
	var upstreams [][]*scripted
	for _, g := range groups {
		var list []*scripted
		locality := group("a")
		for range g.cases {
			u := startScripted(t, g.good)
			list = append(list, u)
			e := endpoint(u.addr())
			if g.edit != nil {
				g.edit(e)
			}
			locality.Endpoints = append(locality.Endpoints, e)
		}
		upstreams = append(upstreams, list)
		for _, v := range g.variants() {
			cluster := clusterOf(g.name+"-"+v.name, g.checks(v.edit, apart), locality)
			cluster.TransportSocketMatches = g.sockets
			m.ClusterHealthChecks = append(m.ClusterHealthChecks, cluster)
		}
	}
	theirs, ours := startPair(t, m)
	passing := func(bool) []string { return expectations(groups, func(*wireCase) string { return "H" }) }
	asCases := func(envoy bool) []string {
		return expectations(groups, func(c *wireCase) string {
			if envoy && c.envoy != "" {
				return c.envoy
			}
			return c.want
		})
	}
	for _, phase := range []struct {
		name string
		bad  bool
		want func(envoy bool) []string
	}{{"all pass", false, passing}, {"each as its case", true, asCases}, {"all pass again", false, passing}} {
		for i, g := range groups {
			for j, u := range upstreams[i] {
				if phase.bad {
					u.set(g.cases[j].script)
				} else {
					u.set(g.good)
				}
			}
		}
		names := expectationNames(groups)
		for _, who := range []struct {
			name string
			r    *reports
			want []string
		}{{"Envoy", theirs, phase.want(true)}, {"ours", ours, phase.want(false)}} {
			for _, each := range who.r.become(names, who.want, limit) {
				wrong = append(wrong, phase.name+", "+who.name+": "+each)
			}
		}
		if len(wrong) > 0 {
			break
		}
	}
	return wrong
}

// expectations returns what is to be reported, in a report's order: for each
// group, variant and case.
func expectations(groups []wireGroup, of func(*wireCase) string) (list []string) {
	for _, g := range groups {
		for _, v := range g.variants() {
			for i := range g.cases {
				words := strings.Fields(of(&g.cases[i]))
				list = append(list, words[min(v.column, len(words)-1)])
			}
		}
	}
	return list
}

func expectationNames(groups []wireGroup) (list []string) {
	for _, g := range groups {
		for _, v := range g.variants() {
			for _, c := range g.cases {
				list = append(list, g.name+" "+v.name+": "+c.name)
			}
		}
	}
	return list
}

// become waits until three reports in a row are as wanted, and tells what is
// not when that does not happen.
func (r *reports) become(names, want []string, limit time.Duration) (wrong []string) {
	from, last := -1, -1
	envoy.Await(limit, func() bool {
		r.mu.Lock()
		latest, count := r.latest, r.count
		r.mu.Unlock()
		if count == last {
			return false
		}
		last = count
		got := latest.GetEndpointHealthResponse().GetEndpointsHealth()
		if len(got) != len(want) {
			wrong, from = []string{fmt.Sprintf("%d endpoints are reported, want %d", len(got), len(want))}, -1
			return false
		}
		wrong = nil
		for i, e := range got {
			if b := briefOf(e); b != want[i] && !(len(want[i]) == 1 && strings.HasPrefix(b, want[i])) {
				wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", names[i], b, want[i]))
			}
		}
		if len(wrong) > 0 {
			from = -1
		} else if from < 0 {
			from = count
		}
		return from >= 0 && count-from >= 2
	})
	return wrong
}
