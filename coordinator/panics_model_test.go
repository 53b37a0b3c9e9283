//go:build !race || soak

package coordinator

import (
	"math/rand/v2"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/api"
	"hdsd/health"
	"hdsd/log"
	"hdsd/source"
	"hdsd/source/sample"
)

// TestPanicsMatchFullCount does random changes. Panics match a full count, for all clusters with the
// assignment.
func TestPanicsMatchFullCount(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLab(t)
		all := []string{a1, a2, a3}
		draw := func() (some []*source.Cluster) {
			for _, name := range []string{"web", "other", "own"} {
				service := name
				if random.IntN(2) == 0 {
					service = "both"
				}
				if random.IntN(4) == 0 {
					continue
				}
				c := web(name, all[random.IntN(3):]...)
				sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) { a.ClusterName = service })
				c.ServiceName = service
				some = append(some, c)
			}
			return some
		}
		l.serve(draw()...)
		l.joinAll()
		l.pass(settle + 10*report)
		for range 60 {
			switch random.IntN(7) {
			case 0:
				l.setClusters(draw()...)
			case 1, 2:
				l.truth[all[random.IntN(3)]] = []health.Status{up, down}[random.IntN(2)]
			case 3:
				scope := keyOf([]string{"web", "other", "own"}[random.IntN(3)], all[random.IntN(3)])
				_, _ = l.override(log.Override{Scope: scope, Status: []health.Status{up, down, drained}[random.IntN(3)], Reason: "x", Author: "ann"})
			case 4:
				l.freeze(api.Freeze{Reason: "x", Author: "ann"})
			case 5:
				l.unfreeze("ann")
			}
			l.wantPanics()
			l.pass(report)
			l.wantPanics()
		}
	}
}
