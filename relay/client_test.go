//go:build !race || soak

package relay

import (
	"fmt"
	"testing"
)

// TestAClientThatTakesWhatIsGood of the responses that it refuses, in any order of pushes, flips,
// subscriptions and answers: in the end it has the control plane's newest good resources with
// hdsd's health. It never gets an older version back, and never loses a name. Nothing is kept of
// what it gave up, or when it has gone.
func TestAClientThatTakesWhatIsGood(t *testing.T) {
	t.Parallel()
	const seeds = 400
	for _, k := range []kind{clusters, assignments} {
		for _, delta := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d delta %t", k, delta), func(t *testing.T) {
				for seed := range uint64(seeds) {
					m := newModel(t, seed, k, delta)
					m.toggle(m.random.IntN(modelNames))
					for range 60 {
						switch m.random.IntN(8) {
						case 0:
							m.toggle(m.random.IntN(modelNames))
						case 1:
							m.change(true)
						case 2:
							m.push()
						case 3:
							m.hear()
						case 4, 5:
							m.answer()
						case 6:
							m.setHealth(m.random.IntN(modelNames))
						case 7:
							m.flip()
						}
					}
					m.settle()
					for i := range modelNames {
						m.setHealth(i)
					}
					m.settle()
					m.check()
					for i := range modelNames { // the mistakes are put right
						if m.bad[m.wanted[i]] {
							m.version++
							m.wanted[i] = m.version
						}
					}
					m.push()
					m.settle()
					m.check()
					m.stream.close()
					m.server.memory.forgetAll()
					if n := m.server.stock.size(); n != 0 {
						t.Fatalf("seed %d: after it has gone, %d resources are kept", seed, n)
					}
				}
			})
		}
	}
}
