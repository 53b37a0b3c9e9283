//go:build !race || soak

package coordinator

import (
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/publish"
	"hdsd/source"
	"hdsd/source/sample"
)

const (
	worstOf = configv1.UpstreamHealth_WORST_OF
	ours    = configv1.UpstreamHealth_OURS
	theirs  = configv1.UpstreamHealth_THEIRS
)

// weighing says what the word of sources counts for.
func weighing(of map[string]configv1.UpstreamHealth) func(*configv1.Config) {
	return func(c *configv1.Config) {
		c.Sources = nil
		for name, health := range of {
			c.Sources = append(c.Sources, &configv1.Source{Name: name, UpstreamHealth: health})
		}
	}
}

func local(counts configv1.UpstreamHealth) func(*configv1.Config) {
	return weighing(map[string]configv1.UpstreamHealth{"local": counts})
}

func TestUpstreamHealth(t *testing.T) {
	const (
		drainingSaid = "the source says DRAINING"
		alone        = "the source says %s, and by upstream_health only its word counts"
		initially    = "there is no verdict yet, and initial_health is UNHEALTHY"
	)
	for _, c := range []struct {
		counts  configv1.UpstreamHealth
		verdict health.Status // never: no checker is there
		says    health.Status
		forced  health.Status // by an operator; never: nothing
		told    health.Status
		reason  string
	}{
		{worstOf, up, never, never, up, ""},
		{worstOf, up, drained, never, drained, drainingSaid},
		{worstOf, down, drained, never, down, ""},
		{worstOf, never, up, never, down, initially},
		{worstOf, up, drained, up, drained, drainingSaid},
		{worstOf, up, up, drained, drained, ""},
		{ours, up, down, never, up, ""},
		{ours, down, up, never, down, ""},
		{ours, never, up, never, down, initially},
		{ours, up, down, drained, drained, ""},
		{ours, down, drained, up, up, ""},
		{theirs, down, up, never, up, fmt.Sprintf(alone, up)},
		{theirs, down, never, never, never, fmt.Sprintf(alone, never)},
		{theirs, up, drained, never, drained, fmt.Sprintf(alone, drained)},
		{theirs, up, up, never, up, ""},
		{theirs, never, up, never, up, fmt.Sprintf(alone, up)},
		{theirs, up, up, drained, drained, ""},
		{theirs, up, never, down, down, ""},
		{theirs, up, drained, up, drained, drainingSaid},
		{theirs, down, up, up, up, ""},
	} {
		t.Run(fmt.Sprintf("%v of %v, %v and %v", c.counts, c.verdict, c.says, c.forced), func(t *testing.T) {
			l := newLab(t)
			l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
			local(c.counts)(l.rules)
			l.truth[a1] = c.verdict
			l.serve(saying(web("web", a1), corev3.HealthStatus(c.says)))
			if c.verdict != never {
				l.joinAll()
				l.pass(settle + 10*report)
				l.wantTransitions(1)
			}
			verdict, undecided := c.verdict, c.verdict == never
			if c.forced != never {
				l.setOverride(keyOf("web", a1), c.forced, 0)
				verdict = c.forced
			}
			l.wantTold("web", a1, verdict, c.told, c.reason)
			l.wantProbed("web", undecided)

			// A freeze that holds health changes nothing, nor does its end; what
			// is in the shadow is as the source has it.
			l.freeze(api.Freeze{Author: "ann", Reason: "moving", Hold: true})
			l.wantPublished("web", a1, c.told)
			l.wantProbed("web", undecided)
			l.setClusters(saying(web("web", a1, a2), corev3.HealthStatus(c.says))) // made again
			l.wantPublished("web", a1, c.told)
			frozen := c.says
			if c.forced != never {
				frozen = c.told // an override stays in force
			}
			l.freeze(api.Freeze{Author: "ann", Reason: "moving"})
			l.wantPublished("web", a1, frozen)
			l.freeze(api.Freeze{Author: "ann", Reason: "moving", Hold: true})
			l.wantPublished("web", a1, c.told)
			l.wantProbed("web", undecided)
			l.unfreeze("ann")
			l.wantTold("web", a1, verdict, c.told, c.reason)
			l.reload(func(r *configv1.Config) { r.Mode = configv1.Mode_SHADOW })
			l.wantPublished("web", a1, c.says)
		})
	}
}

// TestLEDSLocalityPassesThrough covers that hdsd checks the other localities. Data planes get the cluster
// with its own health checks, since hdsd does not check the locality.
func TestLEDSLocalityPassesThrough(t *testing.T) {
	k := web("web", a1)
	elsewhere := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: "b"}, LbConfig: &endpointv3.LocalityLbEndpoints_LedsClusterLocalityConfig{
		LedsClusterLocalityConfig: &endpointv3.LedsClusterLocalityConfig{LedsCollectionName: "x"},
	}}
	sample.Change(k, func(a *endpointv3.ClusterLoadAssignment) { a.Endpoints = append(a.Endpoints, elsewhere) })
	l := newLab(t)
	l.truth[a1] = down
	l.serve(k)
	l.joinAll()
	l.pass(settle + 10*report)
	l.wantTold("web", a1, down, down, "")
	l.wantOwnChecks("web", true)
	if got := l.message("web").GetEndpoints(); len(got) != 2 || !proto.Equal(got[1], elsewhere) {
		t.Errorf("published are %v", got)
	}
	if aside := l.describe("web").Quarantined; len(aside) != 1 || aside[0].Address != "endpoints[1]" {
		t.Errorf("set aside are %v", aside)
	}
}

// TestUncheckedEndpointsPassThrough covers each upstream_health.
func TestUncheckedEndpointsPassThrough(t *testing.T) {
	for _, counts := range []configv1.UpstreamHealth{worstOf, ours, theirs} {
		l := newLab(t)
		l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
		local(counts)(l.rules)
		plain := saying(unprobed(web("plain", a1)), 77)
		spared := saying(sparing(web("spared", a1, a2)), corev3.HealthStatus_DRAINING)
		l.serve(plain, spared)
		if a := l.assignments["plain"]; !proto.Equal(a.Message(), plain.Assignment.Message()) || len(a.IDs[0][0]) > 0 {
			t.Errorf("%v: what nobody checks is published as %v", counts, a)
		}
		l.wantTold("spared", a1, never, health.Draining, "the source says DRAINING")
	}
}

// publicationLog records the published health of an address after each call.
type publicationLog struct {
	*lab
	address string
	seen    []health.Status
}

func (r *publicationLog) add() {
	if now := r.published("web", r.address); len(r.seen) == 0 || r.seen[len(r.seen)-1] != now {
		r.seen = append(r.seen, now)
	}
}

func (r *publicationLog) Update(u publish.Update) { r.lab.Update(u); r.add() }

func (r *publicationLog) SetHealth(all []publish.Health) { r.lab.SetHealth(all); r.add() }

// TestReloadChangesUpstreamHealth covers that data planes see no third health in between.
func TestReloadChangesUpstreamHealth(t *testing.T) {
	all := []configv1.UpstreamHealth{worstOf, ours, theirs}
	for _, before := range all {
		for _, after := range all {
			for _, says := range []health.Status{up, drained, down} {
				l := newLab(t)
				local(before)(l.rules)
				l.truth[a1] = down
				l.serve(saying(web("web", a1, a2), corev3.HealthStatus(says)))
				l.joinAll()
				l.pass(settle + 10*report)
				sent := l.sent["ca"]
				r := &publicationLog{lab: l, address: a1}
				r.add()
				l.core.publisher.planes = r
				l.reload(local(after))
				want := map[configv1.UpstreamHealth]health.Status{worstOf: down, ours: down, theirs: says}
				if got := slices.Compact([]health.Status{want[before], want[after]}); !slices.Equal(r.seen, got) {
					t.Errorf("from %v to %v, where the source says %v: published as %v, want %v", before, after, says, r.seen, got)
				}
				l.pass(10 * report)
				if l.sent["ca"] != sent {
					t.Errorf("from %v to %v: a checker begins anew", before, after)
				}
			}
		}
	}
}

// TestUpstreamHealthOfEndpointSource covers a cluster and its endpoints from two sources.
func TestUpstreamHealthOfEndpointSource(t *testing.T) {
	byEDS := func(name string) *sourceCluster {
		k := web(name, a1)
		k.Config = publish.TakeOver(k.Config, publish.ByADS())
		k.ServiceName, k.Assignment = "svc", nil
		return k
	}
	endpoints := func(from string) *sourceCluster {
		k := saying(web("svc", a1), corev3.HealthStatus_DRAINING)
		k.Source, k.Config, k.HealthChecks = from, nil, nil
		return k
	}
	l := newLab(t)
	weighing(map[string]configv1.UpstreamHealth{"local": theirs, "upstream": ours, "backup": worstOf})(l.rules)
	sets := func(local, upstream, backup []*sourceCluster) []*source.Set {
		return []*source.Set{{Source: "local", Clusters: local}, {Source: "upstream", Clusters: upstream}, {Source: "backup", Clusters: backup}}
	}
	l.intake.restart(sets([]*sourceCluster{byEDS("web")}, []*sourceCluster{endpoints("upstream")}, []*sourceCluster{endpoints("backup")}), catalog.NewRules(l.rules))
	l.step(machine.Begun{})
	l.joinAll()
	l.pass(settle + 10*report)
	l.wantTold("web", a1, up, up, "")

	// They come from another source now.
	l.intake.restart(sets([]*sourceCluster{byEDS("web")}, nil, []*sourceCluster{endpoints("backup")}), catalog.NewRules(l.rules))
	l.wantTold("web", a1, up, drained, "the source says DRAINING")

	// Nothing of the second source's counts where the first has the same.
	both := func(name, from string) *sourceCluster {
		k := endpoints(from)
		k.Name, k.Config = name, byEDS(name).Config
		k.HealthChecks = web(name, a1).HealthChecks
		return k
	}
	l.intake.restart(sets(nil, []*sourceCluster{both("web", "upstream")}, []*sourceCluster{both("db", "backup")}), catalog.NewRules(l.rules))
	l.pass(10 * report)
	l.wantTold("web", a1, up, up, "")
	l.wantTold("db", a1, up, up, "")
	l.intake.restart(sets([]*sourceCluster{both("web", "local")}, nil, []*sourceCluster{both("db", "backup")}), catalog.NewRules(l.rules))
	l.wantTold("web", a1, up, drained, "the source says DRAINING, and by upstream_health only its word counts")
	l.wantTold("db", a1, up, drained, "the source says DRAINING, and by upstream_health only its word counts")
}
