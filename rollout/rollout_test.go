package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/health"
	"hdsd/rollout"
	"hdsd/rollout/canary"
)

// long is enough for any trial.
const long = 20 * report

func TestNothingIsTriedBeforeStart(t *testing.T) {
	l := newLab(t)
	l.connect("a1", "a2")
	l.set(web("web", "/one", 80))
	l.pass(long)
	l.wantHaving("/one")
	l.Start(l.now)
	l.tick()
	l.wantHaving("/one", "a1")
	l.pass(long)
	l.wantHaving("/one", "a1", "a2")
}

// TestAChangeGoesToOneCheckerFirst: the others keep the version before, and are
// behind meanwhile.
func TestAChangeGoesToOneCheckerFirst(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2", "a3")
	l.set(web("web", "/one", 80, 81))
	l.pass(long)
	l.set(web("web", "/two", 80, 81))
	l.wantHaving("/two", "a1")
	l.wantHaving("/one", "a2", "a3")
	if l.Behind("a1") || !l.Behind("a2") || l.Trials() != 1 {
		t.Errorf("a1 is behind: %t, a2: %t, %d trials", l.Behind("a1"), l.Behind("a2"), l.Trials())
	}
	if reason := l.Reason("web"); !strings.HasSuffix(reason, "now to a1") {
		t.Errorf("the reason is %q", reason)
	}
	l.pass(long)
	l.wantHaving("/two", "a1", "a2", "a3")
	if l.Behind("a2") || l.Reason("web") != "" || l.Trials() != 0 {
		t.Errorf("in the end a2 is behind, since %q", l.Reason("web"))
	}
	if got := l.kinds(); got[canary.Started] != 2 || got[canary.Proven] != 2 {
		t.Errorf("events are %v", got)
	}
}

// TestOnlyTheNewShapeWaits: an endpoint like those before goes to all at once, one of
// another shape to the canary.
func TestOnlyTheNewShapeWaits(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2")
	l.set(web("web", "/one", 80))
	l.pass(long)
	l.set(web("web", "/one", 80, 81, 9001))
	l.wantHaving("port_value:81", "a1", "a2")
	l.wantHaving("host-9001", "a1")
	if k, index := l.Endpoint(2); l.UntriedReason(k, index) == "" {
		t.Error("no reason says why the new shape has no votes")
	}
	l.pass(long)
	l.wantHaving("host-9001", "a1", "a2")
	if k, index := l.Endpoint(2); l.UntriedReason(k, index) != "" {
		t.Error("a reason says that it has none in the end")
	}
}

// TestBuildsAreTriedApart: what one build survives may end another.
func TestBuildsAreTriedApart(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2", "b1")
	l.set(web("web", "/one", 80))
	l.pass(long)
	l.wantHaving("/one", "a1", "a2", "b1")
	if got := l.kinds(); got[canary.Proven] != 2 {
		t.Errorf("events are %v, want a trial for each build", got)
	}
	for _, r := range l.records {
		if len(l.records) != 1 || len(r.Proven) != 2 {
			t.Errorf("%+v is recorded, want two proofs of one shape", l.records)
		}
	}
}

// TestAVersionThatIsNotAcceptedIsWithdrawn and tried elsewhere.
func TestAVersionThatIsNotAcceptedIsWithdrawn(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2")
	l.set(web("web", "/one", 80))
	l.pass(long)
	l.set(web("web", "/two", 80))
	l.checkers["a1"].rejects = true
	l.pass(7 * report)
	l.wantHaving("/one", "a1")
	l.wantHaving("/two", "a2")
	l.checkers["a1"].rejects = false
	l.pass(long)
	l.wantHaving("/two", "a1", "a2")
}

// TestTwoLossesBlockAVersion over a restart, until the cluster changes.
func TestTwoLossesBlockAVersion(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2", "a3")
	l.set(web("web", "/one", 80))
	l.pass(long)
	l.set(web("web", "/killer", 80))
	for n := 0; n < 100 && !l.Blocked("web"); n++ {
		for _, id := range l.having("/killer") {
			l.lose(id)
			l.pass(report)
			l.connect(id)
		}
		l.pass(2 * report)
	}
	if got := l.kinds(); !l.Blocked("web") || l.BlockedClusters() != 1 || got[canary.Lost] != 1 || got[canary.Blocked] != 1 {
		t.Fatalf("blocked is %t, events are %v", l.Blocked("web"), got)
	}
	l.wantHaving("/one", "a1", "a2", "a3")
	if last := l.events[len(l.events)-1]; l.Behind("a1") || !strings.Contains(last.Reason, "were lost while they tried this version") {
		t.Errorf("a1 is behind: %t; the last event is %+v", l.Behind("a1"), last)
	}

	after := newLab(t)
	for _, record := range l.records {
		after.Restore(*record)
	}
	after.set(web("web", "/killer", 80))
	after.ForgetAbsent()
	after.Start(after.now)
	after.connect("a1", "a2")
	after.pass(long)
	after.wantHaving("/killer")
	if !after.Blocked("web") {
		t.Error("after a restart it is not blocked")
	}
	after.set(web("web", "/mended", 80))
	after.pass(long)
	after.wantHaving("/mended", "a1", "a2")
}

// TestSamplesAreReportedAgain when they become the canary's own: their votes did not count.
func TestSamplesAreReportedAgain(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1")
	l.set(web("web", "/one", 80, 9001))
	share := func(endpoints ...health.EndpointID) rollout.Work {
		return rollout.Work{Endpoints: slices.Values(endpoints)}
	}
	spec, _ := l.Specifier(l.now, "a1", share(0))
	if len(spec.Order) != 2 || spec.Retell {
		t.Errorf("the canary is sent %v, told anew is %t", spec.Order, spec.Retell)
	}
	if spec, _ = l.Specifier(l.now, "a1", share(0, 1)); len(spec.Order) != 2 || !spec.Retell {
		t.Errorf("then it is sent %v, told anew is %t", spec.Order, spec.Retell)
	}
	if spec, _ = l.Specifier(l.now, "a1", share(0, 1)); spec.Retell {
		t.Error("nothing changes, and it is told anew")
	}
}

// TestManyClustersCostFewSpecifiers: their release is not one specifier for each.
func TestManyClustersCostFewSpecifiers(t *testing.T) {
	l := newLab(t)
	l.connect("a1", "a2", "a3")
	for i := range 200 {
		l.set(web(fmt.Sprintf("web-%03d", i), "/one", 80))
	}
	l.Start(l.now)
	before := map[string]int{}
	for id, c := range l.checkers {
		before[id] = c.sent
	}
	l.pass(long)
	for id, c := range l.checkers {
		if len(c.spec.Order) != 200 || c.sent-before[id] > 8 {
			t.Errorf("%s has %d of 200 clusters after %d specifiers", id, len(c.spec.Order), c.sent-before[id])
		}
	}
}

// TestAProvenCheckNeedsNoTrialInAnotherCluster: a new cluster with it goes to all at once.
func TestAProvenCheckNeedsNoTrialInAnotherCluster(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2")
	for i := range 200 {
		l.set(web(fmt.Sprintf("web-%03d", i), "/one", 80+uint32(i)))
	}
	if reason := l.Reason("web-001"); reason != "checks like those of this cluster go to one checker first, now to a1 with the cluster web-000" {
		t.Errorf("a cluster that waits says %q", reason)
	}
	l.pass(long)
	before := l.checkers["a2"].sent
	l.set(web("new", "/one", 999))
	l.wantHaving("port_value:999", "a1", "a2")
	if got := l.kinds(); got[canary.Started] != 1 || got[canary.Proven] != 1 {
		t.Errorf("events are %v, want one trial", got)
	}
	if sent := l.checkers["a2"].sent; len(l.checkers["a2"].spec.Order) != 201 || sent != before+1 {
		t.Errorf("a2 has %d clusters after %d specifiers", len(l.checkers["a2"].spec.Order), sent)
	}
}

// TestRandomChangesRestartOnlyChangedVotes, votes begin anew exactly where what a checker is sent differs
// (lab.specify), everything good reaches everybody, and deadlines are kept.
func TestRandomChangesRestartOnlyChangedVotes(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLab(t)
		l.Start(l.now)
		l.connect("a1", "a2", "b1", "b2")
		for range 40 {
			name := fmt.Sprintf("web-%d", random.IntN(3))
			ports := []uint32{80}
			for range random.IntN(4) {
				ports = append(ports, 81+uint32(random.IntN(3)))
				ports = append(ports, 9001+uint32(random.IntN(3)))
			}
			slices.Sort(ports)
			switch random.IntN(5) {
			case 0:
				id := slices.Sorted(maps.Keys(l.checkers))[random.IntN(4)]
				l.lose(id)
				l.connect(id)
			case 1:
				id := slices.Sorted(maps.Keys(l.checkers))[random.IntN(4)]
				l.checkers[id].rejects = !l.checkers[id].rejects
			default:
				l.set(web(name, fmt.Sprintf("/%d", random.IntN(3)), slices.Compact(ports)...))
			}
			l.pass(time.Duration(random.IntN(8)) * report)
		}
		for _, c := range l.checkers {
			c.rejects = false
		}
		l.pass(15 * time.Minute) // longer than any back-off
		for id, c := range l.checkers {
			for endpoint := range l.work() {
				if _, sent := c.probes[endpoint]; !sent || !c.votes[endpoint] {
					t.Errorf("%s is sent %d: %t; votes are expected: %t", id, endpoint, sent, c.votes[endpoint])
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestAReasonNamesTheOtherClusterAsUsersKnowIt: a data plane's version of it has a name of hdsd's own.
func TestAReasonNamesTheOtherClusterAsUsersKnowIt(t *testing.T) {
	l := newLab(t)
	l.Start(l.now)
	l.connect("a1", "a2")
	for _, name := range []string{"web-000", "web-001"} {
		k := web(name+"#1111111111111111", "/one", 80)
		k.Config = &clusterv3.Cluster{Name: name}
		l.set(k)
	}
	if reason := l.Reason("web-001#1111111111111111"); !strings.HasSuffix(reason, "now to a1 with the cluster web-000 (version 1111111111111111)") {
		t.Errorf("the reason is %q", reason)
	}
}
