package coordinator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/assign"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source"
)

// placement is where the checkers of a cluster's endpoints are to be.
type placement struct{ zones, regions assign.Placement }

var placements = map[configv1.Placement]assign.Placement{
	configv1.Placement_SPREAD: assign.Spread, configv1.Placement_OWN_ONLY: assign.OwnOnly,
	configv1.Placement_OWN_FIRST: assign.OwnFirst, configv1.Placement_ANYWHERE: assign.Anywhere,
}

// placementOf gives that of clusters with no policy of their own.
func placementOf(a *configv1.Assignment) placement {
	p := placement{placements[a.GetZones()], assign.Anywhere}
	if a != nil {
		p = p.or(nil, a.Regions)
	}
	return p
}

// or gives a placement with what is said instead.
func (p placement) or(zones, regions *configv1.Placement) placement {
	if zones != nil {
		p.zones = placements[*zones]
	}
	if regions != nil {
		p.regions = placements[*regions]
	}
	return p
}

// placing gives the placement of a cluster.
func (r *rules) placing(name string) placement {
	p := r.policyOf(name)
	return r.placement.or(p.zones, p.regions)
}

// capacity is what the configuration says that some checkers can take.
type capacity struct {
	glob            string
	weight, ceiling float64
}

func capacitiesOf(a *configv1.Assignment) []capacity {
	var all []capacity
	for _, c := range a.GetCheckers() {
		all = append(all, capacity{c.GetNodeIdGlob(), c.GetWeight(), c.GetMaxChecksPerSecond()})
	}
	return all
}

// endow gives a checker the capacity that the configuration says it has, else
// the weight that its node says.
func (r *rules) endow(k *health.Checker, says float64) {
	k.Weight, k.MaxChecksPerSecond = says, 0
	if r == nil {
		return
	}
	for _, c := range r.capacities {
		if source.Match(c.glob, k.ID) {
			k.Weight, k.MaxChecksPerSecond = c.weight, c.ceiling
			break
		}
	}
	if k.Weight == 0 {
		k.Weight = 1
	}
}

// endowAll gives all checkers the capacities of new rules.
func (c *core) endowAll(e *edit) {
	for _, id := range slices.Sorted(maps.Keys(c.checkers)) {
		known := c.checkers[id]
		before := known.Checker
		c.rules.endow(&known.Checker, known.says)
		changed := before.Weight != known.Weight || before.MaxChecksPerSecond != known.MaxChecksPerSecond
		if changed && known.connected && known.cover == uncovered && !c.silent[id].replaced() {
			e.plan.Join = append(e.plan.Join, known.Checker)
		}
	}
}

// rateOf is how many checks in 1,000 seconds an endpoint with some health
// checks costs each of its checkers.
func rateOf(checks []*corev3.HealthCheck) int64 {
	sum := 0.0
	for _, check := range checks {
		if interval := check.GetInterval().AsDuration().Seconds(); interval > 0 {
			sum += 1000 / interval
		}
	}
	return int64(math.Round(sum))
}

// strandedReason says why nobody checks an endpoint of a cluster.
func (c *core) strandedReason(k *cluster, id health.EndpointID) string {
	connected := c.connected()
	if connected == 0 {
		return "not checked: no checker is connected"
	}
	state := fmt.Sprintf("%d connected", connected)
	if silent := len(c.silent); silent > 0 {
		state += fmt.Sprintf(", %d of them silent", silent)
	}
	switch _, why := c.planner.Shortage(id); why {
	case assign.TooFar:
		return fmt.Sprintf("not checked: none of the checkers (%s) that are able to check it, %s, is in its zone or region, and others may not: see zones and regions under assignment or its policy", state, k.takes())
	case assign.NoRoom:
		return fmt.Sprintf("not checked: all checkers (%s) that are able to check it, %s, are at their max_checks_per_second", state, k.takes())
	}
	return fmt.Sprintf("not checked: none of the checkers (%s) is able to check it, %s", state, k.takes())
}

// takes says what it takes to check a cluster's endpoints.
func (c *cluster) takes() string {
	needs := make([]string, len(c.safe.Needs))
	for i, need := range c.safe.Needs {
		needs[i] = string(need)
	}
	takes := "which takes " + strings.Join(needs, ", ")
	if c.reach != nil {
		takes += ", and is among those that its policy says can reach it"
	}
	return takes
}

// shortReason says that an endpoint has fewer checkers than it should although
// there are others; empty where that is not so.
func (c *core) shortReason(k *cluster, id health.EndpointID) string {
	missing, why := c.planner.Shortage(id)
	if missing == 0 {
		return ""
	}
	lacks := fmt.Sprintf("it lacks %d of %d checkers", missing, max(k.redundancy, 1))
	switch why {
	case assign.NoRoom:
		return lacks + ": all others that are able are at their max_checks_per_second"
	case assign.TooFar:
		return lacks + ": no other that is able is in its zone or region, and others may not: see zones and regions under assignment or its policy"
	case assign.TooFew:
		return lacks + ": no other is able to check it, " + k.takes()
	}
	return ""
}
