package alone

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// nameServer is a DNS server that gives each name what it says now.
type nameServer struct {
	port string

	mu    sync.Mutex
	asked map[string]int                      // questions, by name
	says  map[string]func(asked int) response // by name
}

// response is what it answers: records after the name that is asked for, and the code.
type response struct {
	records []string
	code    int
}

// startNameServer starts one that knows no name.
func startNameServer(t testing.TB) *nameServer {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{asked: map[string]int{}, says: map[string]func(int) response{}}
	_, s.port, _ = net.SplitHostPort(socket.LocalAddr().String())
	server := &dns.Server{PacketConn: socket, Handler: s}
	var served sync.WaitGroup
	served.Go(func() { _ = server.ActivateAndServe() })
	t.Cleanup(func() {
		_ = server.Shutdown()
		served.Wait()
	})
	return s
}

// ServeDNS implements dns.Handler. It has the records of the type that is asked for, and CNAMEs.
func (s *nameServer) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg).SetReply(question)
	asks := question.Question[0]
	name := strings.TrimSuffix(strings.ToLower(asks.Name), ".")
	s.mu.Lock()
	says := s.says[name]
	if (asks.Qtype == dns.TypeA || asks.Qtype == dns.TypeAAAA) && says != nil {
		now := says(s.asked[name])
		s.asked[name]++
		answer.Rcode = now.code
		for _, text := range now.records {
			record, err := dns.NewRR(strings.ReplaceAll(text, "$name", asks.Name))
			if err == nil && (record.Header().Rrtype == asks.Qtype || record.Header().Rrtype == dns.TypeCNAME) {
				answer.Answer = append(answer.Answer, record)
			}
		}
	}
	s.mu.Unlock()
	_ = w.WriteMsg(answer) // a client that does not get it asks again
}

// put gives a name other records, and returns how often it was asked for.
func (s *nameServer) put(name string, says func(asked int) response) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says[name] = says
	return s.asked[name]
}

// answer is a step in which the case's name gets other records, until they were asked for often.
func (s *nameServer) answer(says func(asked int) response) Step {
	return func(p *Play) {
		p.t.Helper()
		before := s.put(p.name+".test", says)
		envoy.Eventually(p.t, fleet.Patience, "questions for the name", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.asked[p.name+".test"] >= before+8 // each data plane's own, and some to spare
		})
	}
}

// steady says the same each time.
func steady(code int, records ...string) func(int) response {
	return func(int) response { return response{records, code} }
}

// behave has one IP of the only upstream behave.
func behave(ip int, b upstream.Behaviour) Step {
	return func(p *Play) {
		b := b // cases that play at the same time share the step
		b.Header = http.Header{"X-Endpoint": {fmt.Sprint(ip)}}
		p.up(0).SetAt(fmt.Sprintf("127.0.0.%d", ip), b)
	}
}

// reachable waits until both data planes may send traffic to exactly these IPs.
func reachable(ips ...int) Step {
	return func(p *Play) {
		p.t.Helper()
		p.await(fmt.Sprintf("%v to be up", ips), func(_ Plane, hosts map[string]envoy.Host) bool {
			up := 0
			for _, host := range hosts {
				if !host.Failed() {
					up++
				}
			}
			for _, ip := range ips {
				if host, there := hosts[fmt.Sprintf("127.0.0.%d:%d", ip, p.up(0).Port())]; !there || host.Failed() {
					return false
				}
			}
			return up == len(ips)
		})
		taken(p)
	}
}

// resolvers is hdsd's configuration of it.
func (s *nameServer) resolvers() string { return "dns: {resolvers: [\"127.0.0.1:" + s.port + "\"]}\n" }

// cluster is a cluster of the case's name, which Envoys ask this server for.
func (s *nameServer) cluster(kind, family string) string {
	return strings.Replace(static("{endpoint: {address: {socket_address: {address: $name.test, port_value: #0}}}}", checks(check), noPanic,
		"dns_lookup_family: "+family, "dns_refresh_rate: 0.5s", `typed_dns_resolver_config: {name: envoy.network.dns_resolver.cares, typed_config: {"@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, resolvers: [{socket_address: {address: 127.0.0.1, port_value: `+s.port+`}}]}}`), "STATIC", kind, 1)
}

// TestNames plays clusters of names that hdsd resolves beside Envoys that do.
func TestNames(t *testing.T) {
	t.Parallel()
	s := startNameServer(t)
	rig := NewRig(t, Options{Checkers: 3, ResolveNames: true, Config: s.resolvers()})
	cluster := s.cluster("STRICT_DNS", "V4_ONLY")
	everywhere := upstream.Options{Address: "0.0.0.0:0"}
	alive := []Step{behave(1, upstream.Healthy()), behave(2, upstream.Healthy()), behave(3, broken), behave(4, upstream.Healthy()), behave(5, upstream.Healthy())}
	both := []string{"$name 60 A 127.0.0.1", "$name 60 A 127.0.0.2"}
	var oddities []Step
	for _, says := range []func(int) response{
		steady(dns.RcodeSuccess, both[1], both[0]),
		steady(dns.RcodeSuccess, both[0], both[0], both[1]),
		steady(dns.RcodeSuccess, "$name 0 A 127.0.0.1", "$name 0 A 127.0.0.2"),
		steady(dns.RcodeSuccess, "$name 60 CNAME other.test.", "other.test. 60 A 127.0.0.2", "other.test. 60 A 127.0.0.1"),
		steady(dns.RcodeServerFailure), steady(dns.RcodeSuccess, both...),
		steady(dns.RcodeSuccess), steady(dns.RcodeSuccess, both...),
	} {
		oddities = append(oddities, s.answer(says), reachable(1, 2))
	}
	rig.Run(t, []Case{
		{
			Name: "one address of five in turn", Cluster: cluster, Upstream: everywhere, Want: Same,
			Steps: append(alive, s.answer(func(asked int) response {
				return response{records: []string{fmt.Sprintf("$name 1 A 127.0.0.%d", 1+asked%5)}}
			}), reachable(1, 2, 4, 5), During(600), Send(80)),
		},
		{
			Name: "oddities of answers", Cluster: cluster, Upstream: everywhere, Want: Same,
			Steps: append(alive, s.answer(steady(dns.RcodeSuccess, both...)), reachable(1, 2), Send(20), During(20, oddities...), Send(20), behave(2, broken), reachable(1), Send(20)),
		},
	})
}
