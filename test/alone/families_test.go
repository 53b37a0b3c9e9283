package alone

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"github.com/rs/zerolog"

	builtin "hdsd/check"
	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// families are the values of dns_lookup_family, with what a name with both kinds of addresses
// stands for.
var families = map[string][]string{"AUTO": {"::1"}, "ALL": {"127.0.0.1", "::1"}, "V4_PREFERRED": {"127.0.0.1"}, "V6_ONLY": {"::1"}}

// sixth is the IPv6 twin of upstream 0: same port, on ::1.
type sixth struct{ server *upstream.Server }

func (s *sixth) start(p *Play) {
	p.t.Helper()
	s.server = fleet.Upstreams(p.t, 1, upstream.Options{Address: fmt.Sprintf("[::1]:%d", p.up(0).Port())})[0]
	s.set(upstream.Healthy())(p)
}

func (s *sixth) set(b upstream.Behaviour) Step {
	return func(p *Play) {
		p.t.Helper()
		b := b // cases that play at the same time share the step
		b.Header = http.Header{"X-Endpoint": {"6"}}
		if err := s.server.Set(b); err != nil {
			p.t.Fatal(err)
		}
	}
}

// only waits until both data planes may send traffic to exactly these IPs, of the port of
// upstream 0.
func only(ips ...string) Step {
	return func(p *Play) {
		p.t.Helper()
		onlyOf(Alone, ips...)(p)
		onlyOf(Through, ips...)(p)
	}
}

// onlyOf waits until one data plane may.
func onlyOf(plane Plane, ips ...string) Step {
	return Await(plane, fmt.Sprintf("%v to be up", ips), func(p *Play) bool {
		var up, wanted []string
		for address, host := range p.hosts(plane) {
			if !host.Failed() {
				up = append(up, address)
			}
		}
		for _, ip := range ips {
			wanted = append(wanted, net.JoinHostPort(ip, fmt.Sprint(p.up(0).Port())))
		}
		slices.Sort(up)
		slices.Sort(wanted)
		return slices.Equal(up, wanted)
	})
}

// verdicts waits until hdsd has one on each endpoint, so that the data plane behind it checks
// nothing itself.
func verdicts(p *Play) {
	p.t.Helper()
	envoy.Eventually(p.t, fleet.Patience, "verdicts on "+p.name, func() bool {
		endpoints := p.rig.Hdsd.Endpoints(p.name)
		for _, e := range endpoints {
			if e.Health == "UNKNOWN" {
				return false
			}
		}
		return len(endpoints) > 0
	})
	taken(p)
}

// TestFamilies plays names with addresses of both families.
func TestFamilies(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, version string) {
		s := startNameServer(t)
		rig := NewRig(t, Options{Version: version, Checkers: 3, ResolveNames: true, Config: s.resolvers()})
		var cases []Case
		for family, ips := range families {
			twin := &sixth{}
			cases = append(cases, Case{
				Name: "both families by " + strings.ReplaceAll(strings.ToLower(family), "_", " "), Cluster: s.cluster("STRICT_DNS", family), Want: Same,
				Steps: []Step{
					twin.start, s.answer(steady(dns.RcodeSuccess, bothFamilies...)), only(ips...), verdicts, Send(40),
					twin.set(broken), only(slices.DeleteFunc(slices.Clone(ips), isSixth)...), Send(20), twin.set(upstream.Healthy()), only(ips...), Send(40),
				},
			})
		}
		s.know(cases)
		t.Run("case", func(t *testing.T) { rig.Run(t, cases) })
	})
}

var bothFamilies = []string{"$name 60 A 127.0.0.1", "$name 60 AAAA ::1"}

// know has the server know the cases' names before an Envoy asks: one that has got an address of
// the other family keeps it as long as it is healthy.
func (s *nameServer) know(cases []Case) {
	for _, c := range cases {
		s.put(strings.ReplaceAll(c.Name, " ", "-")+".test", steady(dns.RcodeSuccess, bothFamilies...))
	}
}

func isSixth(ip string) bool { return strings.Contains(ip, ":") }

// TestCheckersWithoutIPv6 plays the same with checkers that have no IPv6, as hdsd cannot know:
// they take IPv6 endpoints down that data planes reach. Where a policy keeps the cluster to
// checkers that say that they have it, data planes check it themselves.
func TestCheckersWithoutIPv6(t *testing.T) {
	t.Parallel()
	s := startNameServer(t)
	rig := NewRig(t, Options{ResolveNames: true, Config: s.resolvers() + "policies: [{cluster_name_glob: \"kept-*\", checkers: {metadata: {ipv6: \"true\"}}}]\n"})
	for i := range 3 {
		startWithoutIPv6(t, rig.Hdsd.GRPC, fmt.Sprintf("checker-%d", i+1))
	}
	var cases []Case
	for family, ips := range families {
		twin, kept := &sixth{}, &sixth{}
		name := strings.ReplaceAll(strings.ToLower(family), "_", " ")
		reached := slices.DeleteFunc(slices.Clone(ips), isSixth)
		want := Differs
		if len(reached) == len(ips) {
			want = Same
		}
		cases = append(cases, Case{
			Name: "checkers without ipv6 by " + name, Cluster: s.cluster("STRICT_DNS", family), Want: want,
			Steps: []Step{
				twin.start, s.answer(steady(dns.RcodeSuccess, bothFamilies...)), verdicts,
				onlyOf(Alone, ips...), onlyOf(Through, reached...), Send(40),
			},
		}, Case{
			Name: "kept to checkers with ipv6 by " + name, Cluster: s.cluster("STRICT_DNS", family), Want: Left,
			Steps: []Step{
				kept.start, s.answer(steady(dns.RcodeSuccess, bothFamilies...)), only(ips...), Send(40), kept.set(broken), only(reached...), Send(20),
			},
		})
	}
	s.know(cases)
	t.Run("case", func(t *testing.T) { rig.Run(t, cases) })
}

// startWithoutIPv6 starts a built-in checker on a machine without IPv6.
func startWithoutIPv6(t *testing.T, server, id string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = builtin.Run(ctx, builtin.Options{
			Server: server, NodeID: id, Locality: health.Locality{Region: "eu", Zone: "a"}, Log: zerolog.Nop(),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if isSixth(address[:strings.LastIndex(address, ":")]) {
					return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		})
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
