//go:build !race || soak

package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/source"
	"hdsd/source/sample"
)

// addressList returns n addresses.
func addressList(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.%d.%d:80", i/250, 1+i%250)
	}
	return all
}

// reconfigure applies the configuration again.
func (l *lab) reconfigure() {
	l.intake.restart([]*sourceSet{{Source: "local", Clusters: l.sets[0].Clusters}}, catalog.NewRules(l.rules))
	l.step(machine.Tick{})
}

func TestFirstMatchSetsWeight(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy, l.rules.Checkers.NodeWeights = 1, true
	l.rules.Assignment.Checkers = []*configv1.CheckerCapacity{{NodeIdGlob: "big-*", Weight: 3}, {NodeIdGlob: "*g-?", Weight: 9}}
	l.serve(web("web", addressList(800)...))
	for _, k := range []health.Checker{{ID: "big-1", Weight: 7}, {ID: "node-says", Weight: 2}, {ID: "plain-1"}, {ID: "plain-2"}, {ID: "plain-3"}} {
		k.Abilities = health.Abilities{health.HTTP: {}}
		l.connect(k)
	}
	l.pass(settle + report)
	want := func(loads map[string]int) {
		t.Helper()
		for id, n := range loads {
			if got := l.load(id); got > n*112/100+1 {
				t.Errorf("%s has %d endpoints, its share is %d", id, got, n)
			}
			if got := l.planOf(id).Share; got != n {
				t.Errorf("%s is told that %d are its share, not %d", id, got, n)
			}
		}
	}
	want(map[string]int{"big-1": 300, "node-says": 200, "plain-1": 100, "plain-2": 100, "plain-3": 100})
	l.rules.Assignment.Checkers = []*configv1.CheckerCapacity{{NodeIdGlob: "plain-2", Weight: 2}}
	l.reconfigure() // big-1 is as big as its node says, up to 4 times the median
	want(map[string]int{"big-1": 320, "node-says": 160, "plain-1": 80, "plain-2": 160, "plain-3": 80})
	l.rules.Checkers.NodeWeights = false
	l.reconfigure()
	want(map[string]int{"big-1": 134, "node-says": 134, "plain-1": 134, "plain-2": 267, "plain-3": 134})
}

// TestChecksBeyondCapacity covers checks beyond max_checks_per_second, which wait.
func TestChecksBeyondCapacity(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 1
	l.serve(web("web", addressList(100)...))
	rate := float64(l.core.Rulings.Cluster("web").Rate) / 1000
	l.rules.Assignment.Checkers = []*configv1.CheckerCapacity{{NodeIdGlob: "*", MaxChecksPerSecond: 40 * rate}}
	l.reconfigure()
	l.join("ca", "cb")
	l.pass(settle + report)
	if a, b := l.load("ca"), l.load("cb"); a != 40 || b != 40 {
		t.Errorf("%d and %d are checked, 40 are possible at each", a, b)
	}
	short := l.describe("web").Quarantined
	if len(short) != 20 || !strings.Contains(short[0].Reason, "max_checks_per_second") {
		t.Errorf("%d endpoints are not checked: %v", len(short), short)
	}
	if got := testutil.ToFloat64(l.core.metrics.plan.short); got != 20 {
		t.Errorf("hdsd_endpoints_short is %g", got)
	}
	if reason := l.queryEndpoint("web", short[0].Address).Verdict.Reason; !strings.HasPrefix(reason, short[0].Reason+"; ") {
		t.Errorf("the endpoint says %q", reason)
	}
	digest := l.digest()
	l.join("cc")
	l.pass(report)
	if n := len(l.describe("web").Quarantined); n != 0 || l.digest() == digest {
		t.Errorf("%d endpoints are not checked with room for all", n)
	}
	if n := testutil.CollectAndCount(l.core.metrics.plan.digest, "hdsd_plan_info"); n != 1 {
		t.Errorf("there are %d of hdsd_plan_info", n)
	}
}

// TestShortEndpointHasReason covers endpoints with too few checkers, while there are others.
func TestShortEndpointHasReason(t *testing.T) {
	own := configv1.Placement_OWN_ONLY
	inA := &configv1.CheckerSelector{Localities: []*configv1.LocalitySelector{{Region: "r", Zone: "a"}}}
	for why, rules := range map[string]func(c *configv1.Config){
		"it lacks 1 of 2 checkers: all others that are able are at their max_checks_per_second": func(c *configv1.Config) {
			c.Assignment.Checkers = []*configv1.CheckerCapacity{{NodeIdGlob: "cb", MaxChecksPerSecond: 0.001}}
		},
		"it lacks 1 of 2 checkers: no other that is able is in its zone or region, and others may not": func(c *configv1.Config) {
			c.Assignment.Zones = own
		},
		"it lacks 1 of 2 checkers: no other is able to check it, which takes HTTP, and allowed to by its policy (policies[].checkers)": func(c *configv1.Config) {
			c.Policies = []*configv1.Policy{{ClusterNameGlob: "web", Checkers: inA}}
		},
		"": func(c *configv1.Config) { c.Assignment.Redundancy = 3 }, // both check it
	} {
		l := newLab(t)
		l.rules.Assignment.Redundancy = 2
		rules(l.rules)
		l.serve(inZone(web("web", address1)))
		l.reconfigure()
		for id, zone := range map[string]string{"ca": "a", "cb": "b"} {
			l.connect(health.Checker{ID: id, Locality: health.Locality{Region: "r", Zone: zone}, Abilities: health.Abilities{health.HTTP: {}}})
		}
		l.pass(settle + 10*report)
		reason := l.queryEndpoint("web", address1).Verdict.Reason
		if !strings.Contains(reason, why) || why == "" && strings.Contains(reason, "lacks") {
			t.Errorf("%q instead of %q", reason, why)
		}
	}
}

// inZone puts a cluster's endpoints into zone a of region r.
func inZone(c *source.Cluster) *source.Cluster {
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].Locality = &corev3.Locality{Region: "r", Zone: "a"}
	})
	return c
}

func TestZonesByPolicy(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 2
	own := configv1.Placement_OWN_ONLY
	l.rules.Policies = []*configv1.Policy{{ClusterNameGlob: "near", Zones: &own}, {ClusterNameGlob: "region", Regions: &own}}
	l.serve(inZone(web("near", address1)), inZone(web("region", address2)), inZone(web("web", address3)))
	for i, zone := range []string{"a", "a", "b"} {
		l.connect(health.Checker{
			ID: fmt.Sprint("c", i), Locality: health.Locality{Region: "r", Zone: zone}, Abilities: health.Abilities{health.HTTP: {}},
		})
	}
	l.pass(settle + report)
	if who := l.checkersOf(address1); !slices.Equal(who, []string{"c0", "c1"}) {
		t.Errorf("near is checked by %v", who)
	}
	if who := l.checkersOf(address3); !slices.Contains(who, "c2") || len(who) != 2 {
		t.Errorf("web is checked by %v", who)
	}
	l.lose("c0")
	l.lose("c1")
	l.pass(grace + 2*report)
	if got := l.describe("near").Quarantined; len(got) != 1 || !strings.Contains(got[0].Reason, "zone or region") {
		t.Errorf("%v", got)
	}
	if who := l.checkersOf(address2); !slices.Equal(who, []string{"c2"}) {
		t.Errorf("region is checked by %v", who)
	}
}
