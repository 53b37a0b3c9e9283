package eds

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"hdsd/eds/poll"
	"hdsd/health"
	"hdsd/publish"
)

// claiming makes a poll say that the client has a version, or refuses another.
func claiming(m *discoveryv3.DiscoveryRequest, has, refuses, why string) *discoveryv3.DiscoveryRequest {
	m.VersionInfo, m.ResponseNonce = has, refuses
	if why != "" {
		m.ErrorDetail = &statuspb.Status{Code: 3, Message: why}
	}
	return m
}

// pollText describes all clients that poll, as "dp-1 REST 2/1/1/0 oops".
func (b *bench) pollText() string {
	var all []string
	for _, c := range b.server.Clients(nil) {
		text := fmt.Sprintf("%s %s %d/%d/%d/%d %s", c.ID, c.Poll.Protocol, c.Resources, c.Synced, c.Stale, c.Error, c.LastError)
		all = append(all, strings.TrimSpace(text))
	}
	return strings.Join(all, ", ")
}

func TestPollsAreShown(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		began := time.Now()
		polls := func(what, has, refuses, why string, wantCode int, wantStatus, wantClients string) string {
			t.Helper()
			time.Sleep(time.Second)
			code, r := pollREST(t, b.server, EndpointsPath, claiming(want(resourcev3.EndpointType, "none", "a"), has, refuses, why))
			equal(t, what, code, wantCode)
			equal(t, what, b.statusText(), wantStatus)
			equal(t, what, b.pollText(), wantClients)
			c := b.server.Clients(nil)[0]
			equal(t, what+": since", c.Connected, began.Add(time.Second))
			equal(t, what+": poll", c.Poll.Time, time.Now())
			equal(t, what+": holds", c.Poll.Held, has)
			if code == http.StatusOK {
				equal(t, what+": given", c.Poll.Served, r.GetVersionInfo())
			}
			return r.GetVersionInfo()
		}
		first := polls("first", "", "", "", 200, "a: outstanding HE, none: outstanding absent", "dp-1 REST 2/0/2/0")
		polls("did not get it", "", "", "", 200, "a: outstanding HE, none: outstanding absent", "dp-1 REST 2/0/2/0")
		polls("taken", first, "", "", 304, "a: accepted HE, none: accepted absent", "dp-1 REST 2/2/0/0")
		equal(t, "accepted", b.server.Clients(nil)[0].LastAck, time.Now())
		b.server.setHealth(0, health.Unhealthy)
		equal(t, "changed", b.statusText(), "a: outdated, none: accepted absent")
		equal(t, "changed", b.pollText(), "dp-1 REST 2/1/1/0")
		second := polls("the next", first, "", "", 200, "a: outstanding UN, none: outstanding absent", "dp-1 REST 2/0/2/0")
		polls("refused", first, second, "no", 304, "a: refused UN (no UN), none: refused absent (no)", "dp-1 REST 2/0/0/2 no")
		b.server.setHealth(0, health.Timeout)
		third := polls("what is newer", first, "", "", 200, "a: outstanding TI (no), none: outstanding absent (no)", "dp-1 REST 2/0/2/0 no")
		polls("refused without a nonce", first, "", "again", 200, "a: refused TI (again TI), none: refused absent (again)", "dp-1 REST 2/0/0/2 again")
		for c := range b.server.Subscribers() {
			equal(t, "holds what it took first", c.Resources()[0].Holds, true)
		}
		polls("of an older one", first, second, "late", 200, "a: refused TI (again TI), none: refused absent (again)", "dp-1 REST 2/0/0/2 late")
		polls("taken after all", third, "", "", 304, "a: accepted TI, none: accepted absent", "dp-1 REST 2/2/0/0 late")
		polls("begun anew", "", "", "", 200, "a: outstanding TI, none: outstanding absent", "dp-1 REST 2/0/2/0 late")
		for c := range b.server.Subscribers() {
			equal(t, "holds nothing", c.Resources()[0].Holds, false)
			equal(t, "sent", c.Resources()[0].Sent, time.Now().UTC())
		}
	})
}

func TestPollByAClientThatHasTheVersion(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		_, r := pollREST(t, b.server, EndpointsPath, &discoveryv3.DiscoveryRequest{ResourceNames: []string{"a"}})
		equal(t, "without a node id", b.pollText(), "")
		code, _ := pollREST(t, b.server, EndpointsPath, claiming(want("", "a"), r.GetVersionInfo(), "", ""))
		equal(t, "known", code, http.StatusNotModified)
		for c := range b.server.Subscribers() {
			has := c.Resources()[0]
			equal(t, "state", resourceText(&has), "a: accepted HE")
			equal(t, "sent", has.Sent, time.Time{})
			equal(t, "version", has.Version, formatVersion(b.server.published.assignments.slots["a"].current().version))
		}
	})
}

func TestAClientPollsInSeveralWays(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		b.server.Update(publish.Update{Clusters: clusters("c", "1")})
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		p.send(ack(p.next()))
		r, err := b.fetchClusters(claiming(want(resourcev3.ClusterType), "", "", ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, names := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
			pollREST(t, b.server, EndpointsPath, want("", names...))
		}
		if _, err := b.fetchClusters(claiming(want(resourcev3.ClusterType, "*"), r.GetVersionInfo(), "", "")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		text := ""
		for c := range b.server.Subscribers() {
			text += c.Service + ":"
			for _, r := range c.Resources() {
				text += " " + resourceText(&r)
			}
			text += "; "
		}
		equal(t, "all ways", text, "FETCH: c: accepted 1; REST: a: outstanding HE b: outstanding HE; ADS: a: accepted HE; ")
		equal(t, "clients", len(b.server.Clients(nil)), 5)
		equal(t, "pollers", b.server.polls.Count(time.Now()), 2)
		p.cancel()
		p.leaves()
	})
}

// leaves waits for the stream's end, where there are also clients without streams.
func (p *xdsPeer[Req, Res]) leaves() {
	<-p.ended
	synctest.Wait()
}

func TestPollsOfEverything(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("b", "d")
		_, r := pollREST(t, b.server, EndpointsPath, want(""))
		pollREST(t, b.server, EndpointsPath, claiming(want("", "*", "a"), r.GetVersionInfo(), "", ""))
		equal(t, "everything", b.statusText(), "b: accepted HE, d: accepted HE")
		b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 5, 1)}, RemovedAssignments: []string{"d"}})
		equal(t, "since", b.statusText(), "a: not sent, b: accepted HE, d: outdated absent")
		equal(t, "since", b.pollText(), "dp-1 REST 3/1/2/0")
		pollREST(t, b.server, EndpointsPath, claiming(want(""), r.GetVersionInfo(), "", ""))
		equal(t, "given", b.statusText(), "a: outstanding UN, b: outstanding HE")
	})
}

func TestPollsOfVariants(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		m := want("", "b", "a")
		m.Node.Locality = &corev3.Locality{Zone: "x"}
		m.ResourceLocators = []*discoveryv3.ResourceLocator{locator("a", "zone", "y"), locator("none", "zone", "x")}
		_, r := pollREST(t, b.server, EndpointsPath, m)
		pollREST(t, b.server, EndpointsPath, claiming(m, r.GetVersionInfo(), "", ""))
		equal(t, "variants", b.statusText(), "a: accepted UNHE, a: accepted HEHE, b: accepted HEHE, none: accepted absent")
		for c := range b.server.Subscribers() {
			all := c.Resources()
			equal(t, "zones", fmt.Sprint(all[0].Zone.Zone, all[1].Zone.Zone, all[2].Zone.Zone, all[3].Zone.Zone), "xyxx")
		}
		b.server.SetZoneHealth(zoneNamed("y"), down(1), nil)
		equal(t, "of one zone", b.statusText(), "a: accepted UNHE, a: outdated, b: accepted HEHE, none: accepted absent")
	})
}

func TestPollersAreForgotten(t *testing.T) {
	registry := prometheus.NewRegistry()
	counted := func(n int) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP hdsd_xds_pollers Data planes that polled, by gRPC or REST, within five minutes.
# TYPE hdsd_xds_pollers gauge
hdsd_xds_pollers %d
`, n)), "hdsd_xds_pollers"); err != nil {
			t.Error(err)
		}
	}
	inOneBubble(t, Options{Metrics: registry}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		for _, name := range []string{"b", "a"} {
			pollREST(t, b.server, EndpointsPath, want("", name))
		}
		time.Sleep(poll.Stays - time.Second)
		pollREST(t, b.server, EndpointsPath, want("", "b"))
		counted(1)
		equal(t, "both", len(b.server.Clients(nil)), 2)
		time.Sleep(time.Second)
		equal(t, "the one that went on", b.statusText(), "b: outstanding HE")
		time.Sleep(poll.Stays)
		equal(t, "none", b.pollText(), "")
		counted(0)
	})
}

// TestPollersAreBounded: the oldest poll is forgotten first.
func TestPollersAreBounded(t *testing.T) {
	s := NewServer(Options{})
	s.polls = poll.NewTracker(5120) // of ten polls, more or less
	s.fetcher = newFetcher(s)
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1)}})
	polls := func(id string) {
		m := want("", "a")
		m.Node = node(id)
		pollREST(t, s, EndpointsPath, m)
	}
	polls("first")
	polls("second")
	for i := range 100 {
		polls(fmt.Sprint("dp-", i))
		polls("second")
	}
	all := map[string]bool{}
	for _, c := range s.Clients(nil) {
		all[c.ID] = true
	}
	if len(all) < 5 || len(all) > 12 || all["first"] || !all["second"] || all["dp-80"] || !all["dp-99"] {
		t.Errorf("remembered: %v", all)
	}
}
