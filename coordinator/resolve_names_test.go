package coordinator_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/miekg/dns"
)

// nameServer is a DNS server that knows the addresses of web.test.
type nameServer struct {
	address string

	mu        sync.Mutex
	addresses []string
	broken    bool
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
		for _, address := range n.addresses {
			answer.Answer = append(answer.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(address)})
		}
	}
	_ = w.WriteMsg(answer)
}

func (n *nameServer) says(broken bool, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken, n.addresses = broken, addresses
}

// upstreamsOnOnePort serves on one port of several addresses, and returns the port.
func upstreamsOnOnePort(t *testing.T, addresses ...string) (port string) {
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
	}
	return port
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

// TestNamesAreResolvedAndChecked: a STRICT_DNS cluster becomes an EDS cluster of its
// addresses, follows DNS, stays while DNS fails, and over a restart.
func TestNamesAreResolvedAndChecked(t *testing.T) {
	t.Parallel()
	port := upstreamsOnOnePort(t, "127.0.0.2", "127.0.0.3")
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
	is("EDS a web.test=127.0.0.3:HEALTHY")
	n.says(false, "127.0.0.3", "127.0.0.9") // where nobody is
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.9:UNHEALTHY")
	s.counts(2, 1)
	n.says(true)
	s.eventually("a failure of DNS", func() bool { return s.scrape().sum("hdsd_names_failing") == 2 })
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.9:UNHEALTHY")
	s.stopped()

	s = newSite(t, dir, text, clusters)
	p = s.plane()
	is("EDS a web.test=127.0.0.3:HEALTHY web.test=127.0.0.9:UNHEALTHY") // before any checker is back
	n.says(false, "127.0.0.2")
	s.ready()
	s.checker("c1")
	is("EDS a web.test=127.0.0.2:HEALTHY")
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
