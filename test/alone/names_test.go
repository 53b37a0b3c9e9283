package alone

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"hdsd/internal/demo/upstream"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// turner is a DNS server that gives the addresses of each name in turn, one in each answer.
type turner struct {
	address string
	answers atomic.Int64
}

func newTurner(t *testing.T, addresses ...string) *turner {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &turner{address: packets.LocalAddr().String()}
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		answer := new(dns.Msg).SetReply(question)
		if q := question.Question[0]; q.Qtype == dns.TypeA {
			next := addresses[int(n.answers.Add(1))%len(addresses)]
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(next)}}
		}
		_ = w.WriteMsg(answer)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.ActivateAndServe()
	}()
	t.Cleanup(func() {
		_ = packets.Close()
		<-ended
	})
	return n
}

// inTurn is a cluster of one name, given its checks, and the host and the port of a DNS server.
const inTurn = `name: $name
type: STRICT_DNS
connect_timeout: 1s
dns_lookup_family: V4_ONLY
dns_refresh_rate: 1s
%s
` + noPanic + `
typed_dns_resolver_config:
  name: envoy.network.dns_resolver.cares
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig
    resolvers: [{socket_address: {address: %s, port_value: %s}}]
load_assignment:
  cluster_name: $name
  endpoints: [{locality: {region: eu, zone: a}, lb_endpoints: [{endpoint: {address: {socket_address: {address: web.test, port_value: #0}}}}]}]
`

// TestNamesInTurn: DNS gives one address of five at a time, of which one is dead.
func TestNamesInTurn(t *testing.T) {
	const dead = "127.0.0.9"
	living := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}
	names := newTurner(t, append([]string{dead}, living...)...)
	host, port, _ := net.SplitHostPort(names.address)
	rounds := func(n int64) Step {
		return func(p *Play) {
			p.t.Helper()
			until := names.answers.Load() + n*int64(2*(len(living)+1)) // of two that ask
			envoy.Eventually(p.t, fleet.Patience, "answers of DNS", func() bool { return names.answers.Load() >= until })
		}
	}
	c := Case{
		Name: "names in turn", Want: Same, Upstream: upstream.Options{Address: "0.0.0.0:0"},
		Cluster: fmt.Sprintf(inTurn, checks(check), host, port),
		Steps: []Step{
			func(p *Play) {
				p.ups[0].SetAt(dead, broken)
				for _, ip := range living {
					b := upstream.Healthy()
					b.Header = http.Header{"X-Endpoint": {ip}}
					p.ups[0].SetAt(ip, b)
				}
			},
			rounds(1),
			Eventually("all that live", func(p *Play, plane Plane) bool {
				hosts := p.hosts(plane)
				for _, ip := range living {
					if host, there := hosts[fmt.Sprint(ip, ":", p.up(0).Port())]; !there || host.Failed() {
						return false
					}
				}
				return true
			}),
			taken, During(20, rounds(2)), Send(80),
		},
	}
	rig := NewRig(t, Options{Checkers: 3, ResolveNames: true, Config: fmt.Sprintf("\ndns: {resolvers: [%q]}\n", names.address)})
	t.Run("case", func(t *testing.T) { rig.Run(t, []Case{c}) })
}
