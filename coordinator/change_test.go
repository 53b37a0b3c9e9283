package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/source"
	"hdsd/source/sample"
)

// believed returns the number of believed votes on an address.
func (l *lab) believed(cluster, address string) int {
	l.t.Helper()
	count := 0
	for _, o := range l.core.Aggregator.Verdict(l.idOf(keyOf(cluster, address))).Observations {
		if o.Disbelieved == "" {
			count++
		}
	}
	return count
}

// remade returns an equal cluster, as from a file that is read again.
func remade(c *sourceCluster) *sourceCluster {
	again := *c
	again.Config, again.Assignment = proto.CloneOf(c.Config), source.EncodeAssignment(c.Assignment.Message())
	again.HealthChecks = again.Config.GetHealthChecks()
	return &again
}

// onPort81 sets another port for the checks of an endpoint.
func onPort81(c *sourceCluster, index int) {
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[index].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: 81}
	})
}

func TestReloadWithoutChange(t *testing.T) {
	web, db := web("web", address1, address2), web("db", address3)
	l := newSettledLab(t, web, db)
	sent, order := maps.Clone(l.sent), len(l.order)
	posted := 0
	post := l.deliver
	l.deliver = func(d catalog.Delivery) { posted += len(d.Changed); post(d) }
	l.intake.restart(l.sets, catalog.NewRules(l.rules))
	if posted > 0 {
		t.Errorf("%d clusters were prepared again", posted)
	}
	l.setClusters(remade(web), remade(db)) // the same with other pointers
	if posted != 2 {
		t.Errorf("%d clusters were prepared again, want 2", posted)
	}
	l.pass(report)
	if !maps.Equal(sent, l.sent) {
		t.Errorf("specifiers sent: %v, before %v", l.sent, sent)
	}
	if n := l.believed("web", address1); n != 3 {
		t.Errorf("%d votes count afterwards, want 3", n)
	}
	if slices.Contains(l.order[order:], "appended") {
		t.Error("verdicts changed")
	}
}

// TestVotesStayWithoutNewSpecifier changes clusters in ways that do not change specifiers. Checkers do not
// report their votes again then, so hdsd must keep the votes.
func TestVotesStayWithoutNewSpecifier(t *testing.T) {
	cases := map[string]func(*sourceCluster){
		"metadata": func(c *sourceCluster) {
			sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
				a.Endpoints[0].LbEndpoints[0].Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
					"envoy.lb": {Fields: map[string]*structpb.Value{"version": structpb.NewStringValue("2")}},
				}}
			})
		},
		"hidden parts of the check": func(c *sourceCluster) {
			c.HealthChecks[0].EventLogPath = "/var/log/checks"
			c.HealthChecks[0].AlwaysLogHealthCheckFailures = true
		},
		"what was the default": func(c *sourceCluster) {
			c.HealthChecks[0].NoTrafficInterval = durationpb.New(time.Second)
		},
		"balancing": func(c *sourceCluster) { c.Config.ConnectTimeout = durationpb.New(time.Second) },
		"priority": func(c *sourceCluster) {
			sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) { a.Endpoints[0].Priority = 1 })
		},
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			first := web("web", address1, address2)
			l := newSettledLab(t, first)
			sent := maps.Clone(l.sent)
			second := remade(first)
			edit(second)
			l.setClusters(second)
			l.pass(10 * time.Second)
			if !maps.Equal(sent, l.sent) {
				t.Fatalf("specifiers sent: %v, before %v: the case does not test what it should", l.sent, sent)
			}
			if n := l.believed("web", address1); n != 3 {
				t.Errorf("%d votes count afterwards, want 3", n)
			}
			l.truth[address1] = health.Unhealthy
			l.pass(2 * report)
			l.wantPublished("web", address1, health.Unhealthy)
		})
	}
}

func TestChangedCheckDelaysBelief(t *testing.T) {
	cases := map[string]func(*sourceCluster){
		"path": func(c *sourceCluster) { c.HealthChecks[0].GetHttpHealthCheck().Path = "/other" },
		"port": func(c *sourceCluster) {
			onPort81(c, 0)
		},
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			first := web("web", address1, address2)
			l := newSettledLab(t, first)
			second := remade(first)
			edit(second)
			l.unprobed = address1
			l.setClusters(second)
			for range 20 { // at one checker first, then at the others
				l.pass(report)
				l.wantPublished("web", address1, health.Healthy)
			}
			l.wantPublished("web", address1, health.Healthy)
			if n := l.believed("web", address1); n != 3 {
				t.Errorf("%d votes count in the end, want 3", n)
			}
			l.wantTransitions(2)
		})
	}
}

func TestChangeSendsFewSpecifiers(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 1
	addresses := make([]string, 60)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.1.%d:80", i+1)
	}
	first := web("web", addresses...)
	l.serve(first)
	for i := range 6 {
		l.join(fmt.Sprintf("c%d%c", i, 'a'+i%3))
	}
	l.pass(settle + 5*time.Second)
	sent, built := maps.Clone(l.sent), 0
	l.core.hds = counting{l, &built}
	second := remade(first)
	onPort81(second, 7)
	l.setClusters(second)
	for id := range l.checkers {
		if want := slices.Contains(l.checkersOf(addresses[7]), id); (l.sent[id] > sent[id]) != want {
			t.Errorf("%s was sent %d specifiers, checks the endpoint: %v", id, l.sent[id]-sent[id], want)
		}
	}
	if built != 1 {
		t.Errorf("%d specifiers were built, want 1", built)
	}
}

func TestSharedServiceNameHasWorstHealth(t *testing.T) {
	first, second := withPath("alive", "/alive", address1, address2), withPath("ready", "/ready", address1, address2)
	for _, c := range []*sourceCluster{first, second} { // equal, but not the same pointer
		c.ServiceName = "app"
		sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) { a.ClusterName = "app" })
	}
	l := newSettledLab(t, first, second)
	l.wantPublished("app", address1, health.Healthy)
	for _, cluster := range []string{"alive", "ready"} {
		id := l.idOf(keyOf(cluster, address1))
		for _, k := range l.checkers {
			l.step(machine.Reported{Checker: k.ID, Votes: []health.Vote{{Endpoint: id, Status: health.Timeout}}})
		}
		l.step(machine.Tick{})
		l.wantPublished("app", address1, health.Timeout)
		l.wantPublished("app", address2, health.Healthy)
		for _, k := range l.checkers {
			l.step(machine.Reported{Checker: k.ID, Votes: []health.Vote{{Endpoint: id, Status: health.Healthy}}})
		}
		l.step(machine.Tick{})
		l.wantPublished("app", address1, health.Healthy)
	}
	l.setClusters(second)
	l.wantPublished("app", address1, health.Healthy)
	if n := len(l.assignments["app"].IDs[0][0]); n != 1 {
		t.Errorf("%d verdicts decide after one cluster is gone, want 1", n)
	}
	l.setClusters()
	if l.assignments["app"].Wire != nil {
		t.Error("the service is still published after both clusters are gone")
	}
}

func TestDuplicateEndpointIsCheckedOnce(t *testing.T) {
	// The address in two spellings, and once with checking disabled.
	c := web("web", "[2001:db8::1]:80", "[2001:DB8:0::1]:80", address1, address1, address2)
	disabled := lbEndpoint(address2)
	disabled.GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints = slices.Insert(a.Endpoints[0].LbEndpoints, 0, disabled)
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{
			Locality: &corev3.Locality{Zone: "b"}, LbEndpoints: []*endpointv3.LbEndpoint{lbEndpoint(address1)},
		})
	})
	l := newSettledLab(t, c)
	k := l.core.Rulings.Cluster("web")
	if len(k.Endpoints) != 4 {
		t.Errorf("listed are %+v, want four", k.Endpoints)
	}
	for _, e := range k.Endpoints {
		if e.Checked() == catalog.None {
			t.Errorf("%v is listed as not checked", e.Key())
		}
	}
	ids := l.assignments["web"].IDs
	if len(ids[0][0]) != 0 {
		t.Error("the endpoint whose check is disabled does not pass through")
	}
	if len(ids[0]) != 4 || len(ids[0][1]) != 1 || len(ids[0][2]) != 1 || len(ids[0][3]) != 1 {
		t.Errorf("twins are decided by %v", ids[0])
	}
	if slices.Equal(ids[1][0], ids[0][2]) {
		t.Error("the same address in another locality is not another endpoint")
	}
	l.setClusters(asEDS(c)) // of which twins go out as they came
	ids = l.assignments["web"].IDs
	if !slices.Equal(ids[0][1], ids[0][2]) || !slices.Equal(ids[0][3], ids[0][4]) || len(ids[0][4]) != 1 || len(ids[0][5]) != 1 {
		t.Errorf("twins by EDS are decided by %v", ids[0])
	}
}

// counting counts specifiers.
type counting struct {
	*lab
	built *int
}

func (c counting) Assign(id string, s *specifier.Specifier) {
	*c.built++
	c.lab.Assign(id, s)
}
