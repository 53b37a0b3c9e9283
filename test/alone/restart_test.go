package alone

import (
	"fmt"
	"testing"

	"hdsd/test/upstream"
)

// restarts are cases in which hdsd ends as by kill -9, and starts again. An answer with
// an error takes an endpoint down at once, whatever the threshold.
var restarts = []Case{
	{
		Name: "a restart before the first verdict", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{restart, Ready(), Send(40), synced, Set(1, broken), Down(1), stored, During(40, restart), Send(20)},
	},
	{
		Name: "an endpoint fails soon after a restart", Cluster: eds(with("unhealthy_threshold: 2", "unhealthy_threshold: 40"), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Ready(), restart, synced, Failing(20, Set(1, broken), Down(1)), Send(20)},
	},
	{
		Name: "an endpoint fails while hdsd is away", Cluster: eds(with("unhealthy_threshold: 2", "unhealthy_threshold: 40"), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Ready(), Failing(20, func(p *Play) { p.rig.Hdsd.Kill() }, Set(1, broken), Await(Alone, "endpoint 1 to be down", func(p *Play) bool {
			return p.hosts(Alone)[p.up(1).Addr()].Failed()
		}), func(p *Play) { p.rig.Hdsd.Start() }, Down(1)), Send(20)},
	},
	{
		// Until there is a verdict, it is the data plane's own first check that a cluster waits for.
		// Envoy's warming_state is 1 only until the endpoints are there, some 15 ms.
		Name: "a restart while an Envoy warms a cluster", Cluster: eds(with("timeout: 2s", "timeout: 5s"), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Upstream: upstream.Options{Behaviour: upstream.Hang()},
		Steps: []Step{Await(Through, "to warm the cluster", func(p *Play) bool { return p.stat(Through, "health_check.attempt") > 0 && len(p.hosts(Through)) == 0 }),
			restart, Set(0, upstream.Healthy()), Set(1, upstream.Healthy()), Ready(), Send(40), Set(1, broken), Down(1), Send(20)},
	},
	{
		Name: "a restart before a cluster has endpoints", Cluster: eds(checks(check), noPanic), Want: Same,
		Steps: []Step{Await(Through, "to ask for endpoints", func(p *Play) bool { return p.stat(Through, "update_attempt") > 0 }),
			restart, Change("", assignment("$0, $1")), Ready(), Send(40), Set(1, broken), Down(1), Send(20)},
	},
}

// stored waits until the last verdict on endpoint 1 is on disk: a kill loses what is not.
func stored(p *Play) {
	p.t.Helper()
	Await(Through, "its verdict to be on disk", func(p *Play) bool {
		for _, change := range p.rig.Hdsd.Transitions(p.name) {
			if change.Address == p.up(1).Addr() && change.To == p.rig.Hdsd.Endpoints(p.name)[change.Address].Health {
				return true
			}
		}
		return false
	})(p)
}

// restart ends hdsd and starts it again.
func restart(p *Play) {
	p.rig.Hdsd.Kill()
	p.rig.Hdsd.Start()
}

// synced waits until all checkers follow what hdsd sent them.
func synced(p *Play) { p.rig.Hdsd.AwaitSynced(len(p.rig.Checkers)) }

// TestRestarts plays one case after the other, since each ends hdsd.
func TestRestarts(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		if whole && !full() {
			continue
		}
		t.Run(fmt.Sprintf("whole state %t", whole), func(t *testing.T) {
			NewRig(t, Options{Checkers: 3, WholeState: whole}).Sequence(t, restarts)
		})
	}
}
