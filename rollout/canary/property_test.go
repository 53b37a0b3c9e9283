package canary

import (
	"fmt"
	"testing"
	"time"
)

// fleets runs a test with fleets of one to seven checkers that have some clusters.
func fleets(t *testing.T, count uint64, test func(*world)) {
	for seed := range count {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(t, seed, 1+int(seed%7))
			for i := range 6 {
				w.change(fmt.Sprint("cluster-", i), good)
			}
			w.run(20 * time.Second)
			test(w)
			w.run(20 * time.Minute)
			w.wantAllDecided()
		})
	}
}

// changes schedules random changes of clusters within a time.
func (w *world) changes(within time.Duration, natures ...nature) {
	for range 2 + w.random.IntN(10) {
		name, n := fmt.Sprint("cluster-", w.random.IntN(12)), natures[w.random.IntN(len(natures))]
		w.at(time.Duration(w.random.Int64N(int64(within))), func() { w.change(name, n) })
	}
}

func TestACrashBugCostsTwoCheckersAndGoodVersionsPass(t *testing.T) {
	fleets(t, 25, func(w *world) { w.changes(2*time.Minute, good, good, receipt, reporter, prober, rejected) })
}

func TestARollingRestartBlocksNothing(t *testing.T) {
	fleets(t, 25, func(w *world) {
		w.rolling(time.Duration(w.random.IntN(60)) * time.Second)
		w.changes(2*time.Minute, good, good, good, rejected)
	})
}

// TestKillersInARollingRestart: it is not always clear what a checker was
// lost to, so a good version may be blocked. But no crash bug costs more checkers.
func TestKillersInARollingRestart(t *testing.T) {
	fleets(t, 25, func(w *world) {
		w.confused = true
		w.rolling(time.Duration(w.random.IntN(60)) * time.Second)
		w.changes(2*time.Minute, good, good, receipt, reporter, prober, rejected)
	})
}

// TestAKillerInManyClustersCostsTwoCheckers: many clusters have the same version, and so
// do many that are good.
func TestAKillerInManyClustersCostsTwoCheckers(t *testing.T) {
	fleets(t, 50, func(w *world) {
		w.sharing = true
		w.changes(2*time.Minute, good, good, receipt, reporter, prober, rejected)
	})
}

func (w *world) wantAllDecided() {
	w.t.Helper()
	for number, deaths := range w.deaths {
		if deaths > 2 {
			w.t.Errorf("version %d cost %d checkers", number, deaths)
		}
	}
	for name, v := range w.present {
		proven, blocked := true, w.ledger.Blocked(name)
		for _, p := range w.checkers {
			proven = proven && w.ledger.Proven(BuildOf(&p.Checker), name)
		}
		want := map[bool]bool{true: proven, false: blocked}[v.nature == good]
		if v.nature == rejected {
			want = !proven && !blocked
		}
		if !want && !(w.confused && blocked) {
			w.t.Errorf("%s, of nature %d: proven %t, %+v", name, v.nature, proven, w.ledger.Standing(name))
		}
	}
}
