package alone

import (
	"testing"

	"hdsd/test/upstream"
)

// late are clusters that no checker is able to check: for a while, or for good.
var late = []Case{
	{
		Name: "checkers come late", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Up(0, 1), Set(1, broken), Down(1), Send(40), During(40, func(p *Play) {
			for range 3 {
				p.rig.AddChecker(p.t)
			}
		}, taken, Down(1)), Send(40), Set(1, upstream.Healthy()), Up(1), Send(40)},
	},
	{
		Name: "no checker is allowed", Cluster: static("$0, $1", checks(check), noPanic), Want: Left,
		Steps: []Step{Up(0, 1), Send(20), Failing(40, Set(1, broken), Down(1)), Send(40), During(20, restart, Down(1)), Send(20)},
	},
}

// TestLateCheckers plays clusters that data planes check until a checker is able to.
func TestLateCheckers(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, Options{Config: "policies: [{cluster_name_glob: no-checker-is-allowed, checkers: {localities: [{zone: elsewhere}]}}]\n"})
	rig.Sequence(t, late)
}
