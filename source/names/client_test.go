package names

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/miekg/dns"
)

// look asks a client once.
func look(c *client, host string, family clusterv3.Cluster_DnsLookupFamily) string {
	q := question(host, func(q *Question) { q.Family = family })
	v4, v6 := c.lookup(context.Background(), q)
	o := combine(family, nil, v4, v6)
	return said(Answer{Addresses: o.addresses, Known: true, Problem: o.noneReason + o.failure})
}

// TestFamilies are looked up as in Envoy.
func TestFamilies(t *testing.T) {
	s := newServer(t)
	s.has("both.test", "10.0.0.1", "2001:db8::1")
	s.has("four.test", "10.0.0.4", "10.0.0.5")
	s.has("six.test", "2001:db8::6")
	c := clientOf(t, s.address)
	const nothing = ", but: it has no such addresses"
	for _, one := range []struct {
		family          clusterv3.Cluster_DnsLookupFamily
		both, four, six string
	}{
		{clusterv3.Cluster_AUTO, "2001:db8::1", "10.0.0.4 10.0.0.5", "2001:db8::6"},
		{clusterv3.Cluster_V4_ONLY, "10.0.0.1", "10.0.0.4 10.0.0.5", nothing},
		{clusterv3.Cluster_V6_ONLY, "2001:db8::1", nothing, "2001:db8::6"},
		{clusterv3.Cluster_V4_PREFERRED, "10.0.0.1", "10.0.0.4 10.0.0.5", "2001:db8::6"},
		{clusterv3.Cluster_ALL, "10.0.0.1 2001:db8::1", "10.0.0.4 10.0.0.5", "2001:db8::6"},
	} {
		for name, want := range map[string]string{
			"both.test": one.both, "four.test": one.four, "six.test": one.six, "none.test": ", but: there is no such name (NXDOMAIN)",
		} {
			if got := look(c, name, one.family); got != want {
				t.Errorf("%s of %s: got %q, want %q", one.family, name, got, want)
			}
		}
	}
}

// TestWhatDoesNotFitAPacket is asked for over TCP.
func TestWhatDoesNotFitAPacket(t *testing.T) {
	s := newServer(t)
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
	}
	s.has("large.test", all...)
	s.does(func(network string, w dns.ResponseWriter, question *dns.Msg) bool {
		if network != "udp" {
			return false
		}
		short := s.answer(question)
		short.Truncated, short.Answer = true, short.Answer[:3]
		_ = w.WriteMsg(short)
		return true
	})
	if got := look(clientOf(t, s.address), "large.test", clusterv3.Cluster_V4_ONLY); got != strings.Join(all, " ") {
		t.Errorf("got %q", got)
	}
	equal(t, "networks", strings.Join(s.networks, " "), "udp tcp")
}

// TestALyingServer gives nothing that was not asked for.
func TestALyingServer(t *testing.T) {
	for what, lie := range map[string]struct {
		records string
		want    string
	}{
		"another name":           {"other.test. 1 IN A 10.0.0.9", ", but: it has no such addresses"},
		"another kind":           {"web.test. 1 IN AAAA 2001:db8::9", ", but: it has no such addresses"},
		"an alias and its own":   {"web.test. 1 IN CNAME other.test.\nother.test. 1 IN A 10.0.0.1\nthird.test. 1 IN A 10.0.0.9", "10.0.0.1"},
		"an alias of itself":     {"web.test. 1 IN CNAME web.test.", ", but: it has no such addresses"},
		"no endpoint's address":  {"web.test. 1 IN A 0.0.0.0\nweb.test. 1 IN A 224.0.0.1\nweb.test. 1 IN A 255.255.255.255", ", but: it has no such addresses"},
		"one address many times": {"web.test. 1 IN A 10.0.0.1\nweb.test. 1 IN A 10.0.0.1", "10.0.0.1"},
		"another case":           {"WEB.test. 1 IN A 10.0.0.1", "10.0.0.1"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newServer(t)
			s.does(func(_ string, w dns.ResponseWriter, question *dns.Msg) bool {
				out := new(dns.Msg).SetReply(question)
				for line := range strings.Lines(lie.records) {
					record, err := dns.NewRR(line)
					if err != nil {
						t.Error(err)
					}
					out.Answer = append(out.Answer, record)
				}
				_ = w.WriteMsg(out)
				return true
			})
			equal(t, "addresses", look(clientOf(t, s.address), "web.test", clusterv3.Cluster_V4_ONLY), lie.want)
		})
	}
	t.Run("another question", func(t *testing.T) {
		s := newServer(t)
		s.does(func(_ string, w dns.ResponseWriter, question *dns.Msg) bool {
			out := new(dns.Msg).SetReply(question)
			out.Question[0].Name = "other.test."
			_ = w.WriteMsg(out)
			return true
		})
		equal(t, "addresses", look(clientOf(t, s.address), "web.test", clusterv3.Cluster_V4_ONLY), ", but: "+s.address+": it answers another question")
	})
}

// TestTheNextServerIsAsked when one fails or says nothing.
func TestTheNextServerIsAsked(t *testing.T) {
	bad, mute, good := newServer(t), newServer(t), newServer(t)
	bad.does(rcode(dns.RcodeServerFailure))
	mute.does(silent)
	good.has("web.test", "10.0.0.1")
	equal(t, "addresses", look(clientOf(t, bad.address, mute.address, good.address), "web.test", clusterv3.Cluster_ALL), "10.0.0.1")
	equal(t, "a failure", look(clientOf(t, bad.address), "web.test", clusterv3.Cluster_ALL), ", but: "+bad.address+": it answers SERVFAIL")
	equal(t, "no answer", look(clientOf(t, mute.address), "web.test", clusterv3.Cluster_V4_ONLY), ", but: "+mute.address+": no answer in time")
}

// TestTheSystemsFiles say whom to ask, where names end, and which addresses are known.
func TestTheSystemsFiles(t *testing.T) {
	s := newServer(t)
	s.has("web.shop.test", "10.0.0.1")
	s.has("web", "10.0.0.2")
	s.has("deep.web.shop.test", "10.0.0.3")
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(t)
	folder := t.TempDir()
	c.system, c.hosts.path = filepath.Join(folder, "resolv.conf"), filepath.Join(folder, "hosts")
	for path, text := range map[string]string{
		c.system:     "nameserver " + host + "\nsearch shop.test\noptions ndots:1\n",
		c.hosts.path: "# names\n127.0.0.7 Fixed fixed.test # here\n::1 fixed\nnonsense\n10.0.0.300 wrong\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers, _ := c.settings("web")
	if !slices.Equal(servers, []string{net.JoinHostPort(host, "53")}) {
		t.Errorf("the servers are %v", servers)
	}
	c.resolvers = []string{net.JoinHostPort(host, port)} // nobody may listen on port 53
	for name, want := range map[string]string{
		"web": "10.0.0.1", "web.": "10.0.0.2", "deep.web": "10.0.0.3", "fixed": "127.0.0.7 ::1", "fixed.test.": "127.0.0.7",
		"wrong": ", but: there is no such name (NXDOMAIN)", "a..b": ", but: the name is not valid",
	} {
		if got := look(c, name, clusterv3.Cluster_ALL); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
