package alone

import (
	"fmt"
	"slices"
	"testing"

	"hdsd/test/upstream"
)

// failed are endpoints of an EDS cluster that fail, in each way that counts.
var failed = []Case{
	{Name: "EDS answers 503", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1, $2"), Steps: failing(broken), Want: Same},
	{Name: "EDS hangs", Cluster: eds(with("timeout: 2s", "timeout: 1s"), noPanic), Assignment: assignment("$0, $1, $2"), Steps: failing(upstream.Hang()), Want: Same},
	{Name: "EDS refuses", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1, $2"), Steps: failing(upstream.Refuse()), Want: Same},
}

// moved are the names of the moves that are played by each way, too.
var moved = []string{
	"a dead endpoint is removed", "ignore_health_on_host_removal", "ignore_new_hosts_until_first_hc", "priorities are swapped",
	"only the zone changes", "the source says unhealthy", "all endpoints and connect_timeout are replaced", "health checks are taken out",
}

// TestEachWay plays the main cases where clusters come through hdsd's relay, and where the
// data plane asks for the state of the world.
func TestEachWay(t *testing.T) {
	t.Parallel()
	cases := slices.Clone(failed)
	for _, c := range moves {
		if slices.Contains(moved, c.Name) {
			cases = append(cases, c)
		}
	}
	for _, o := range []Options{{Relay: true}, {Relay: true, WholeState: true}, {WholeState: true}} {
		if o.WholeState && o.Relay && !full() {
			continue
		}
		t.Run(fmt.Sprintf("relay %t whole state %t", o.Relay, o.WholeState), func(t *testing.T) {
			o.Checkers = 3
			rig := NewRig(t, o)
			t.Run("case", func(t *testing.T) { rig.Run(t, cases) })
		})
	}
}
