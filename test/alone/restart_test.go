package alone

import "testing"

// restarts are cases in which hdsd ends as by kill -9, and starts again.
var restarts = []Case{
	{
		Name: "a restart while an Envoy warms a cluster", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{restart, Ready(), Send(40), synced, Set(1, broken), Down(1), During(40, restart), Send(20)},
	},
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
	for i := range restarts {
		t.Run(restarts[i].Name, func(t *testing.T) {
			NewRig(t, Options{Checkers: 3}).Run(t, restarts[i:i+1])
		})
	}
}
