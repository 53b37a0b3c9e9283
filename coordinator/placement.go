package coordinator

import (
	"fmt"

	"hdsd/assign"
	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// strandedReason says why nobody checks an endpoint of a cluster.
func (c *core) strandedReason(k *catalog.Cluster, id health.EndpointID) string {
	figures := c.fleet.Figures()
	connected := figures.Connected
	if connected == 0 {
		return "not checked: no checker is connected"
	}
	state := fmt.Sprintf("%d connected", connected)
	if silent := figures.Silent; silent > 0 {
		state += fmt.Sprintf(", %d of them silent", silent)
	}
	switch _, why := c.fleet.Shortage(id); why {
	case assign.TooFar:
		return fmt.Sprintf("not checked: none of the checkers (%s) that are able to check it, %s, is in its zone or region, and others may not: see zones and regions under assignment or its policy", state, k.Requirements())
	case assign.NoRoom:
		return fmt.Sprintf("not checked: all checkers (%s) that are able to check it, %s, are at their max_checks_per_second", state, k.Requirements())
	}
	return fmt.Sprintf("not checked: none of the checkers (%s) is able to check it, %s", state, k.Requirements())
}

// shortReason says that an endpoint has fewer checkers than it should although
// there are others; empty where that is not so.
func (c *core) shortReason(k *catalog.Cluster, id health.EndpointID) string {
	missing, why := c.fleet.Shortage(id)
	if missing == 0 {
		return ""
	}
	lacks := fmt.Sprintf("it lacks %d of %d checkers", missing, max(k.Redundancy, 1))
	switch why {
	case assign.NoRoom:
		return lacks + ": all others that are able are at their max_checks_per_second"
	case assign.TooFar:
		return lacks + ": no other that is able is in its zone or region, and others may not: see zones and regions under assignment or its policy"
	case assign.TooFew:
		return lacks + ": no other is able to check it, " + k.Requirements()
	}
	return ""
}
