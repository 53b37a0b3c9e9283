package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/source/sample"
)

const (
	address1 = "10.0.0.1:80"
	address2 = "10.0.0.2:80"
	address3 = "10.0.0.3:80"
)

func TestFirstStart(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
	l.serve(web("web", address1, address2))
	l.wantPublished("web", address1, health.Unhealthy)
	l.join("ca")
	l.pass(settle - report)
	if who := l.checkersOf(address1); who != nil {
		t.Errorf("%v check before the time to settle has passed", who)
	}
	l.join("cb", "cc")
	l.pass(settle)
	if who := l.checkersOf(address1); len(who) != 3 {
		t.Errorf("%v check after settling, want three", who)
	}
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Healthy)
	l.wantTransitions(2)
	if from := l.transitions[0].From; from != health.Unknown {
		t.Errorf("the first transition is from %v, want UNKNOWN", from)
	}
}

func TestVerdictIsPublishedBeforeRecorded(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.truth[address1] = health.Unhealthy
	l.order = nil
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)
	if want := []string{"published", "appended"}; !slices.Equal(l.order, want) {
		t.Errorf("effects in the order %v, want %v", l.order, want)
	}
	if last := l.transitions[len(l.transitions)-1]; last.To != health.Unhealthy || len(last.Observations) != 3 || last.Endpoint.Address != address1 {
		t.Errorf("recorded %+v", last)
	}
}

// newSettledLab returns a settled lab with three checkers in three zones.
func newSettledLab(t testing.TB, clusters ...*sourceCluster) *lab {
	l := newLab(t)
	l.serve(clusters...)
	l.join("ca", "cb", "cc")
	l.pass(settle + 10*time.Second)
	return l
}

func TestRestartKeepsPlanAndHealth(t *testing.T) {
	l := newLab(t)
	l.truth[address2] = health.Unhealthy
	l.serve(web("web", address1, address2, address3))
	names := []string{"ca", "cb", "cc", "da", "db", "dc"}
	l.join(names...)
	l.pass(settle + 10*time.Second)
	l.wantPublished("web", address2, health.Unhealthy)
	l.wantTransitions(3)
	before := map[string][]string{}
	for _, address := range []string{address1, address2, address3} {
		before[address] = l.checkersOf(address)
	}

	l.restart()
	l.serve(web("web", address1, address2, address3))
	l.wantPublished("web", address1, health.Healthy)
	l.wantPublished("web", address2, health.Unhealthy)
	slices.Reverse(names)
	for _, name := range names { // one after the other, while some report already
		l.join(name)
		l.pass(report / 2)
		l.wantPublished("web", address2, health.Unhealthy)
	}
	l.pass(20 * time.Second)
	for address, want := range before {
		if who := l.checkersOf(address); !slices.Equal(who, want) {
			t.Errorf("%s is checked by %v after the restart, by %v before", address, who, want)
		}
	}
	l.wantTransitions(3)
}

func TestStoredPlanWithoutCheckers(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.restart()
	l.serve(web("web", address1))
	if found := l.figures().Connected; found != 0 || len(l.members()) != 3 {
		t.Errorf("%d connected of %d known, want 0 of 3", found, len(l.members()))
	}
	l.join("xa", "xb")
	l.pass(settle - report)
	if who := l.checkersOf(address1); who != nil {
		t.Errorf("%v took over before the time to settle had passed", who)
	}
	l.pass(2 * report)
	if who := l.checkersOf(address1); !slices.Equal(who, []string{"xa", "xb"}) {
		t.Errorf("%v check, want xa and xb", who)
	}
	if len(l.members()) != 2 || len(l.plan) != 2 || l.plan["ca"] != nil {
		t.Errorf("known are %v, stored is %v", l.members(), l.plan)
	}
	l.pass(20 * time.Second)
	l.wantTransitions(1) // the one before the restart
}

func TestSettlingBeginsAtServing(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.restart()
	l.intake.restart(l.sets, catalog.NewRules(l.rules)) // takes long
	l.now = l.now.Add(time.Minute)
	l.step(machine.Tick{})
	if len(l.members()) != 3 {
		t.Error("seats were given up before anyone could come back")
	}
	l.step(machine.Begun{})
	l.join("ca", "cb", "cc")
	l.pass(settle + 10*time.Second)
	l.wantTransitions(1)
}

func TestCheckerLostWhileSettling(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.timing.Grace = 0
	l.restart()
	l.serve(web("web", address1))
	l.join("ca", "cb", "cc")
	l.lose("cb")
	l.pass(settle - report)
	if !l.isMember("cb") || l.plan["cb"] == nil {
		t.Error("the seat was given up before the time to settle had passed")
	}
	l.pass(2 * report)
	if l.isMember("cb") || l.plan["cb"] != nil {
		t.Error("the seat is kept for ever")
	}
}

func TestLostCheckerKeepsSeats(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.join("da", "db", "dc")
	l.pass(10 * time.Second)
	gone := l.checkersOf(address1)[0]
	l.lose(gone)
	l.pass(grace - report)
	if who := l.checkersOf(address1); len(who) != 2 {
		t.Errorf("%v check while %s's seat is kept", who, gone)
	}
	sent := l.sent[l.checkersOf(address1)[0]]
	l.join(gone)
	l.pass(10 * time.Second)
	if who := l.checkersOf(address1); len(who) != 3 || !slices.Contains(who, gone) {
		t.Errorf("%v check after %s is back", who, gone)
	}
	if now := l.sent[l.checkersOf(address1)[1]]; now > sent+1 {
		t.Errorf("others were sent %d specifiers", now-sent)
	}
	l.lose(gone)
	l.pass(grace + report)
	if who := l.checkersOf(address1); len(who) != 3 || slices.Contains(who, gone) {
		t.Errorf("%v check after %s's seat is given up", who, gone)
	}
	l.pass(10 * time.Second)
	l.wantTransitions(1)
	if l.isMember(gone) || l.plan[gone] != nil {
		t.Errorf("%s is still known", gone)
	}
}

func TestTwoLostCheckersGetSubstitute(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.join("da")
	l.pass(2 * time.Second)
	all := l.checkersOf(address1)
	l.lose(all[0])
	l.lose(all[1])
	l.replan()
	if who := l.checkersOf(address1); len(who) != 2 {
		t.Errorf("%v check right after two of three were lost", who)
	}
	l.join(all[0])
	l.join(all[1])
	l.pass(report)
	if who := l.checkersOf(address1); !slices.Equal(who, all) {
		t.Errorf("%v check after the lost are back, want %v", who, all)
	}
}

func TestCheckerReturnsWithOtherAbilities(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.lose("cb")
	l.connect(health.Checker{ID: "cb", Abilities: health.Abilities{health.TCP: {}}})
	if who := l.checkersOf(address1); slices.Contains(who, "cb") {
		t.Errorf("%v check by HTTP, though cb no longer can", who)
	}
	l.truth[address1] = health.Unhealthy
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)
}

func TestClustersChange(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.truth[address2] = health.Unhealthy
	l.setClusters(web("web", address1, address2), web("db", address3))
	l.wantPublished("web", address1, health.Healthy) // not for a moment otherwise
	l.pass(10 * time.Second)
	l.wantPublished("web", address2, health.Unhealthy)
	l.wantPublished("db", address3, health.Healthy)
	if !slices.Equal(l.core.Rulings.Names(), []string{"db", "web"}) || !slices.Equal(l.remembered, []string{"web", "db"}) {
		t.Errorf("known are %v, remembered %v", l.core.Rulings.Names(), l.remembered)
	}
	l.setClusters(web("db", address3)) // web is gone
	if l.assignments["web"].Wire != nil || l.clusters["web"] != nil {
		t.Error("web is still published")
	}
	if who := l.checkersOf(address1); who != nil {
		t.Errorf("%v still check what is gone", who)
	}
	l.pass(report)
	l.setClusters(web("base", address3)) // renamed
	l.pass(10 * time.Second)
	l.wantPublished("base", address3, health.Healthy)
	if l.assignments["db"].Wire != nil || !slices.Equal(l.core.Rulings.Names(), []string{"base"}) {
		t.Errorf("after db became base, known are %v", l.core.Rulings.Names())
	}
}

func TestReusedIDStartsClean(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.truth[address1] = health.Unhealthy
	l.pass(10 * time.Second)
	id := l.idOf(keyOf("web", address1))
	l.wantPublished("web", address1, health.Unhealthy)
	l.setClusters()
	l.pass(time.Minute / 2)
	l.setClusters(web("web", address2))
	if young := l.idOf(keyOf("web", address2)); young == id {
		t.Error("an id is used again before its rest is over")
	}
	l.pass(time.Minute)
	l.setClusters(web("web", address2, address3))
	if got := l.idOf(keyOf("web", address3)); got != id {
		t.Fatalf("the id is %d, want %d again", got, id)
	}
	l.wantPublished("web", address3, health.Unknown)
	if verdict := l.core.Aggregator.Verdict(id); verdict.Status != health.Unknown || len(verdict.Observations) > 0 {
		t.Errorf("the successor begins with %+v", verdict)
	}
	l.pass(10 * time.Second)
	l.wantPublished("web", address3, health.Healthy)
}

func TestChangedInitialHealth(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.truth[address2] = health.Unknown // nobody says anything of it
	l.setClusters(web("web", address1, address2))
	l.pass(report)
	l.wantPublished("web", address2, health.Unknown)
	l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
	l.intake.restart([]*sourceSet{{Source: "local", Clusters: []*sourceCluster{web("web", address1, address2)}}}, catalog.NewRules(l.rules))
	l.wantPublished("web", address1, health.Healthy)
	l.wantPublished("web", address2, health.Unhealthy)
}

func TestForgetAbsentEndpoints(t *testing.T) {
	l := newLab(t)
	unchecked := web("plain", address3)
	unchecked.HealthChecks = nil
	l.serve(web("web", address1), unchecked)
	l.pass(settle - report)
	if l.forget != nil {
		t.Error("forgetting before the start is over")
	}
	l.pass(machine.ForgetDelay)
	if l.forget != nil {
		t.Error("forgetting while the start may not be over")
	}
	l.pass(2 * report)
	if l.forget == nil {
		t.Fatal("the store is never told to forget")
	}
	for key, want := range map[health.Endpoint]bool{
		keyOf("web", address1): true, keyOf("plain", address3): true, keyOf("web", address2): false,
	} {
		if l.forget(key.Hash()) != want {
			t.Errorf("%v: known is %v", key, !want)
		}
	}
	l.setClusters(web("web", address2))
	l.pass(machine.ForgetInterval)
	if !l.forget(keyOf("web", address2).Hash()) || l.forget(keyOf("web", address1).Hash()) {
		t.Error("what is known is not brought up to date")
	}
}

func TestPoliciesSetRedundancyAndReach(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = policiesOf("pay-*", 1, "b")
	l.serve(web("web", address1), web("pay-eu", address2))
	l.join("ca", "cb", "cc")
	l.pass(settle + report)
	if who := l.checkersOf(address2); !slices.Equal(who, []string{"cb"}) {
		t.Errorf("pay-eu is checked by %v, want cb", who)
	}
	if who := l.checkersOf(address1); len(who) != 3 {
		t.Errorf("web is checked by %v, want all", who)
	}
	before := l.core.Rulings.Cluster("web")
	l.rules.Policies = policiesOf("pay-*", 2, "")
	l.intake.restart([]*sourceSet{{Source: "local", Clusters: l.sets[0].Clusters}}, catalog.NewRules(l.rules))
	l.step(machine.Tick{})
	if who := l.checkersOf(address2); len(who) != 2 || !slices.Contains(who, "cb") {
		t.Errorf("pay-eu is checked by %v after its policy changed", who)
	}
	if l.core.Rulings.Cluster("web") != before {
		t.Error("web was looked at again, though nothing of it changed")
	}
}

// TestHostnamesAreShown covers hostnames beside addresses.
func TestHostnamesAreShown(t *testing.T) {
	l := newLab(t)
	named := web("web", address1, address2)
	sample.Change(named, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[1].GetEndpoint().Hostname = "two.test"
	})
	l.serve(named)
	for address, want := range map[string]string{address1: "", address2: "two.test"} {
		if got := l.queryEndpoint("web", address).Hostname; got != want {
			t.Errorf("%s: hostname %q, want %q", address, got, want)
		}
	}
}

func TestUncheckedReasons(t *testing.T) {
	l := newLab(t)
	hostname := web("mixed", address1)
	sample.Change(hostname, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lbEndpoint("db.internal:5432"))
	})
	broken := web("broken", address2)
	broken.Rejected = "cannot be read"
	plain := web("plain", address3)
	plain.HealthChecks = nil
	l.serve(hostname, broken, plain)
	l.connect(health.Checker{ID: "tcp-only", Abilities: health.Abilities{health.TCP: {}}})
	l.pass(settle + report)
	describe := func(name string) string {
		var out []string
		found := l.describe(name)
		for _, q := range found.Quarantined {
			out = append(out, q.Address+": "+q.Reason)
		}
		return strings.Join(out, "\n")
	}
	if got := describe("mixed"); !strings.Contains(got, "db.internal:5432: ") || !strings.Contains(got, address1+": not checked: none of the checkers (1 connected) is able to check it, which takes HTTP") {
		t.Errorf("mixed: %s", got)
	}
	if got := describe("broken"); got != ": cannot be read" {
		t.Errorf("broken: %s", got)
	}
	if got := describe("plain"); got != "" || l.core.Rulings.Cluster("plain").IsChecked() {
		t.Errorf("plain: %s", got)
	}
	l.join("ca")
	l.pass(10 * time.Second)
	if got := describe("mixed"); strings.Contains(got, address1) {
		t.Errorf("mixed, once a checker is able: %s", got)
	}
	l.wantPublished("mixed", address1, health.Healthy)
}

// TestChangeIsPublishedBeforePlanning covers the order, since planning takes time.
func TestChangeIsPublishedBeforePlanning(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1))
	l.join("c0a")
	l.pass(settle + 15*report)
	before := l.core.Fleet.Digest()
	published, planned := 0, 0
	l.core.publisher.planes = spyServer{l, func() {
		published++
		if l.core.Fleet.Digest() != before {
			planned++
		}
	}}
	l.intake.take(localSet([]*sourceCluster{web("web", address1, address2)}))
	if published == 0 || planned > 0 {
		t.Errorf("%d times is something published, %d times after the plan has moved", published, planned)
	}
	if l.core.Fleet.Digest() == before {
		t.Error("the plan has not moved")
	}
}
