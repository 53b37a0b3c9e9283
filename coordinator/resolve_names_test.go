package coordinator_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/miekg/dns"
)

// nameServer is a DNS server that knows the addresses of web.test.
type nameServer struct {
	address string

	mu        sync.Mutex
	addresses []string
	broken    bool
	inTurn    bool // one address in each answer
	answers   int
}

func newNameServer(t *testing.T, addresses ...string) *nameServer {
	t.Helper()
	n := &nameServer{addresses: addresses}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.address = packets.LocalAddr().String()
	started, ended := make(chan struct{}), make(chan struct{})
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(n.serve), NotifyStartedFunc: func() { close(started) }}
	go func() {
		defer close(ended)
		_ = server.ActivateAndServe()
	}()
	<-started
	t.Cleanup(func() {
		_ = server.Shutdown()
		<-ended
	})
	return n
}

func (n *nameServer) serve(w dns.ResponseWriter, question *dns.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer := new(dns.Msg).SetReply(question)
	switch q := question.Question[0]; {
	case n.broken:
		answer.Rcode = dns.RcodeServerFailure
	case q.Name != "web.test.":
		answer.Rcode = dns.RcodeNameError
	case q.Qtype == dns.TypeA:
		addresses := n.addresses
		if n.inTurn {
			addresses = addresses[n.answers%len(addresses):][:1]
		}
		n.answers++
		for _, address := range addresses {
			answer.Answer = append(answer.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(address)})
		}
	}
	_ = w.WriteMsg(answer)
}

func (n *nameServer) says(broken bool, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken, n.inTurn, n.addresses = broken, false, addresses
}

// answered returns how many answers had addresses.
func (n *nameServer) answered() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.answers
}

// turns makes the server give one address in each answer, in turn.
func (n *nameServer) turns(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken, n.inTurn, n.addresses = false, true, addresses
}

// upstreamsOnOnePort serves on one port of several addresses, and returns the port.
func upstreamsOnOnePort(t *testing.T, addresses ...string) (port string, servers []*httptest.Server) {
	t.Helper()
	port = "0"
	for _, address := range addresses {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		_ = server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)
		servers = append(servers, server)
	}
	return port, servers
}

// published describes a cluster as a data plane has it, such as "EDS web.test=10.0.0.1 HEALTHY".
func (p *plane) published(cluster string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clusters[cluster]
	text := c.GetType().String()
	if c.GetLoadAssignment() != nil || len(c.GetHealthChecks()) > 0 || c.GetEdsClusterConfig().GetEdsConfig().GetAds() == nil {
		text += " (not as an EDS cluster)"
	}
	for _, group := range p.assignments[cluster].GetEndpoints() {
		text += " " + group.GetLocality().GetZone()
		for _, e := range group.GetLbEndpoints() {
			text += fmt.Sprintf(" %s=%s:%s", e.GetEndpoint().GetHostname(), e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), e.GetHealthStatus())
		}
	}
	return text
}

// patientStart has hdsd wait for checkers after a restart, also on a busy machine: while none is
// connected, clusters with new endpoints go back to data planes, for a minute.
func patientStart(text string) string {
	return strings.Replace(text, "settle: 0.05s", "settle: 5s", 1)
}

// TestNamesAreResolvedAndChecked covers a STRICT_DNS cluster: it becomes an EDS cluster of its addresses,
// follows DNS, and stays during a failure of DNS and over a restart.
func TestNamesAreResolvedAndChecked(t *testing.T) {
	t.Parallel()
	port, servers := upstreamsOnOnePort(t, "127.0.0.2", "127.0.0.3")
	n := newNameServer(t, "127.0.0.2", "127.0.0.3")
	clusters := strings.NewReplacer("type: STATIC", "type: STRICT_DNS\n  dns_lookup_family: V4_ONLY\n  dns_refresh_rate: 0.1s",
		"- lb_endpoints:", "- locality: {zone: a}\n      lb_endpoints:").Replace(static("web", "web.test:"+port)) +
		strings.Replace(static("other", "gone.test:"+port), "type: STATIC", "type: LOGICAL_DNS\n  dns_refresh_rate: 0.1s", 1)
	text := strings.Replace(quick, "path: clusters.yaml}}", "path: clusters.yaml}}, resolve_names: true", 1) + "dns: {resolvers: [\"" + n.address + "\"]}\n"
	dir := t.TempDir()
	s := newSite(t, dir, text, clusters)
	s.ready()
	s.checker("c1")
	p := s.plane()
	is := func(want string) {
		t.Helper()
		s.eventually(want, func() bool { return p.published("web") == want })
	}
	is("EDS a web.test=127.0.0.2:HEALTHY web.test=127.0.0.3:HEALTHY")
	if got := p.published("other"); got != "EDS (not as an EDS cluster) " || p.clusters["other"].GetType() != clusterv3.Cluster_EDS {
		t.Errorf("a name that does not exist: %s", got) // hdsd checks nothing of it, so its health_checks stay
	}
	if got := s.endpointless()["other"]; got != "DNS has no addresses for its names: gone.test" {
		t.Errorf("why it has no endpoints: %q", got)
	}
	n.says(false, "127.0.0.3")
	servers[0].Close() // until then it would stay
	is("EDS a web.test=127.0.0.3:HEALTHY")
	n.says(false, "127.0.0.3", "127.0.0.9") // where nobody is
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.9:UNHEALTHY")
	s.counts(2, 1)
	n.says(true)
	s.eventually("a failure of DNS", func() bool { return s.scrape().sum("hdsd_names_failing") == 2 })
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.9:UNHEALTHY")
	s.eventually("the failure to need attention", func() bool {
		found := s.needing("SOURCE_BROKEN")
		return len(found) == 1 && strings.HasSuffix(found[0], " (and 1 more)") && strings.Contains(found[0], "clusters.yaml:")
	})
	s.stopped()

	s = newSite(t, dir, patientStart(text), clusters)
	p = s.plane()
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.9:UNHEALTHY") // before any checker is back
	n.says(false, "127.0.0.8")
	s.ready()
	s.checker("c1")
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.8:UNHEALTHY")
}

// TestAlternatingAddressesKeepVerdicts covers DNS with one of five addresses in each answer: healthy
// endpoints stay, and the dead one gets no traffic.
func TestAlternatingAddressesKeepVerdicts(t *testing.T) {
	t.Parallel()
	const dead = "127.0.0.9"
	living := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}
	port, servers := upstreamsOnOnePort(t, living...)
	n := newNameServer(t)
	n.turns(append([]string{dead}, living...)...)
	// A dead address refuses connections, so no check has to time out. One that did on a busy machine would take a
	// living address out of use, and so would a first probe that takes longer than checkers warm up.
	clusters := strings.NewReplacer("type: STATIC", "type: STRICT_DNS\n  dns_lookup_family: V4_ONLY\n  dns_refresh_rate: 0.4s", "{timeout: 1s", "{timeout: 60s").Replace(static("web", "web.test:"+port))
	text := strings.Replace(quick, "path: clusters.yaml}}", "path: clusters.yaml}}, resolve_names: true", 1) + "verdict: {warm_up: 3s}\ndns: {resolvers: [\"" + n.address + "\"]}\n"
	dir := t.TempDir()
	s := newSite(t, dir, text, clusters)
	s.ready()
	s.checker("c1")
	p := s.plane()
	healthy := func() int { return strings.Count(p.published("web"), ":HEALTHY") }
	// What resolves names hears of a verdict a moment later, and an answer in between may still take the address away.
	begin := n.answered()
	s.eventually("all to be healthy, for a round", func() bool {
		if healthy() != len(living) || strings.Contains(p.published("web"), "not as") {
			begin = n.answered()
		}
		return n.answered() > begin+len(living)+1
	})
	s.recorded("web", dead+":"+port, "UNHEALTHY")

	var seen, came, wrong atomic.Int32 // versions of the assignment; those with the dead one; with another health
	p.mu.Lock()
	p.look = func(a *endpointv3.ClusterLoadAssignment) {
		alive := 0
		seen.Add(1)
		for _, e := range a.GetEndpoints()[0].GetLbEndpoints() {
			switch isDead := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress() == dead; {
			case isDead:
				if came.Add(1); e.GetHealthStatus() != corev3.HealthStatus_UNHEALTHY {
					wrong.Add(1)
				}
			case e.GetHealthStatus() == corev3.HealthStatus_HEALTHY:
				alive++
			}
		}
		if alive < len(living) {
			wrong.Add(1)
		}
	}
	p.mu.Unlock()
	before := n.answered()
	s.eventually("some rounds", func() bool { return n.answered() > before+3*(len(living)+1) && came.Load() >= 3 })
	if wrong.Load() > 0 {
		t.Errorf("in %d of %d versions, of which %d have the dead address, health is wrong", wrong.Load(), seen.Load(), came.Load())
	}

	n.says(true)
	s.stopped()
	s = newSite(t, dir, patientStart(text), clusters)
	p = s.plane()
	s.eventually("all to be there after a restart, before a checker is", func() bool { return healthy() == len(living) })
	n.says(false, dead)
	s.ready()
	s.checker("c1")
	s.eventually("the dead address to come beside the others", func() bool {
		return strings.Contains(p.published("web"), dead+":UNHEALTHY") && healthy() == len(living)
	})
	servers[1].Close()
	s.eventually("one to leave that is down", func() bool { return healthy() == 3 && !strings.Contains(p.published("web"), living[1]) })
	move(t, dir, "clusters.yaml", "resources:\n"+strings.Replace(clusters, "connect_timeout", "ignore_health_on_host_removal: true\n  connect_timeout", 1))
	s.eventually("only what DNS gives", func() bool { return p.published("web") == "EDS  web.test="+dead+":UNHEALTHY" })
}

// counts is for what the metrics say of names.
func (s *site) counts(names, failing float64) {
	s.t.Helper()
	s.eventually("names to be counted", func() bool {
		found := s.scrape()
		return found.sum("hdsd_names") == names && found.sum("hdsd_names_failing") == failing &&
			found.sum("hdsd_name_lookups_total") > 2 && found.sum("hdsd_name_failures_total") > 0
	})
}
