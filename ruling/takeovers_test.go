package ruling_test

import (
	"fmt"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source"
)

// wantChecks is for whether data planes get a cluster with its health checks, and how many
// endpoints they are told not to check.
func (l *lab) wantChecks(cluster string, checks bool, exempt int) {
	l.t.Helper()
	l.do(l.table.TakeOver(l.now))
	if got := len(l.clusters[cluster].GetHealthChecks()) > 0; got != checks {
		l.t.Errorf("%s goes out with health checks: %t, want %t", cluster, got, checks)
	}
	count, a := 0, l.assignments[cluster]
	for _, group := range a.Message().GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			if e.GetEndpoint().GetHealthCheckConfig().GetDisableActiveHealthCheck() {
				count++
			}
		}
	}
	if count != exempt {
		l.t.Errorf("%d endpoints of %s are exempt from health checks, want %d", count, cluster, exempt)
	}
}

// strand has no checker able to check endpoints, or one again.
func (l *lab) strand(stranded bool, keys ...health.Endpoint) {
	var ids []health.EndpointID
	for _, key := range keys {
		id, _ := l.table.Find(key.Hash())
		ids = append(ids, id)
		l.stranded[id] = stranded
	}
	if stranded {
		l.table.Strand(l.now, ids, nil)
	} else {
		l.table.Strand(l.now, nil, ids)
	}
}

// wait lets time pass, second by second.
func (l *lab) wait(d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(time.Second)
		if at, ok := l.table.NextDeadline(); ok && !l.now.Before(at) {
			l.do(l.table.TakeOver(l.now))
			if next, still := l.table.NextDeadline(); still && !next.After(l.now) {
				l.t.Fatalf("at %s something is still due at %s", l.now, next)
			}
		}
	}
}

// partly prepares web with an endpoint that checkers may not be sent, and one whose check its
// source disables.
func partly(name string, addresses ...string) *catalog.Cluster {
	from := sourceOf(name, append(addresses, "10.0.0.8", "10.0.0.9")...)
	a := from.Assignment.Message()
	all := a.GetEndpoints()[0].GetLbEndpoints()
	excluded, disabled := all[len(all)-2].GetEndpoint(), all[len(all)-1].GetEndpoint()
	excluded.GetAddress().GetSocketAddress().NetworkNamespaceFilepath = "/run/netns/x"
	disabled.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	from.Assignment = source.EncodeAssignment(a)
	return catalog.Prepare(from, catalog.NewRules(&configv1.Config{}))
}

// TestAClusterIsTakenOverWhenEachEndpointHasAVerdict, and stays so when others come, after
// a restart, and while its checkers are away.
func TestAClusterIsTakenOverWhenEachEndpointHasAVerdict(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses[:2]...))
	l.wantChecks("web", true, 0)
	l.vote(keyOf("web", addresses[0]), up)
	l.wait(time.Hour)
	l.wantChecks("web", true, 0)
	l.vote(keyOf("web", addresses[1]), down)
	l.wantChecks("web", true, 0) // changes are gathered
	l.wait(time.Second)
	l.wantChecks("web", false, 0)
	l.wantPublished(keyOf("web", addresses[1]), down)

	l.say(web("web", addresses...))
	l.wantChecks("web", false, 0)
	l.vote(keyOf("web", addresses[2]), up)
	l.start()
	l.serve(web("web", addresses...))
	l.wantChecks("web", false, 0)
	l.wait(time.Hour)
	l.wantChecks("web", false, 0)
}

// TestSinceWhenAClusterIsNotTakenOver: not since its present endpoints lack a verdict, which others
// lacked before them. Once it is taken over, what each endpoint lacks counts.
func TestSinceWhenAClusterIsNotTakenOver(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses[0]))
	first := l.now
	want := func(since time.Duration) {
		t.Helper()
		if got := l.now.Sub(l.table.Takeover("web").Since); got != since {
			t.Errorf("at %s it lacks something for %s, want %s", l.now.Sub(first), got, since)
		}
	}
	for i := range 20 {
		l.say(web("web", addresses[0], fmt.Sprintf("10.0.1.%d", i)))
		l.vote(keyOf("web", addresses[0]), up)
		want(time.Duration(i) * 10 * time.Second)
		l.wait(10 * time.Second)
		l.wantChecks("web", true, 0)
	}
	l.vote(keyOf("web", "10.0.1.19"), up)
	l.wait(time.Second)
	l.wantChecks("web", false, 0)
	for i := range 3 {
		l.say(web("web", addresses[0], fmt.Sprintf("10.0.2.%d", i)))
		want(0)
		l.wait(10 * time.Second)
	}
}

// TestWhatNobodyChecksIsGivenBack after a while, or at once if a change of the cluster is why.
func TestWhatNobodyChecksIsGivenBack(t *testing.T) {
	key := keyOf("web", addresses[0])
	taken := func(t *testing.T) *lab {
		l := newLab(t)
		l.serve(web("web", addresses[0]))
		l.vote(key, up)
		l.wait(time.Second)
		l.wantChecks("web", false, 0)
		return l
	}
	t.Run("its checkers stay away", func(t *testing.T) {
		l := taken(t)
		l.strand(true, key)
		l.wait(4 * time.Minute)
		l.strand(false, key)
		l.wait(4 * time.Minute)
		l.strand(true, key)
		l.wait(4 * time.Minute)
		l.wantChecks("web", false, 0)
		l.wait(time.Minute)
		l.wantChecks("web", true, 0)
		l.wantPublished(key, up)
		l.strand(false, key)
		l.wait(time.Second)
		l.wantChecks("web", false, 0)
	})
	t.Run("it changes", func(t *testing.T) {
		l := taken(t)
		elsewhere := &configv1.CheckerSelector{Metadata: map[string]string{"vpc": "blue"}}
		l.say(prepared(&configv1.Config{Policies: []*configv1.Policy{{ClusterNameGlob: "web", Checkers: elsewhere}}}, "web", addresses[0]))
		l.strand(true, key)
		l.wantChecks("web", true, 0)
	})
	t.Run("an endpoint never gets a verdict", func(t *testing.T) {
		l := taken(t)
		l.say(web("web", addresses[:2]...))
		l.wait(5*time.Minute - time.Second)
		l.wantChecks("web", false, 0)
		l.wait(time.Second)
		l.wantChecks("web", true, 0)
	})
	t.Run("another endpoint never has a verdict yet, each for a moment", func(t *testing.T) {
		l := taken(t)
		for i := range 20 {
			l.say(web("web", addresses[0], fmt.Sprintf("10.0.1.%d", i), fmt.Sprintf("10.0.1.%d", i+1)))
			l.wait(30 * time.Second)
			if since := l.now.Sub(l.table.Takeover("web").Since); since > time.Minute {
				t.Fatalf("one lacks a verdict for %s", since)
			}
			l.vote(keyOf("web", fmt.Sprintf("10.0.1.%d", i)), up)
		}
		l.wantChecks("web", false, 0)
		l.wait(5 * time.Minute)
		l.wantChecks("web", true, 0)
	})
	t.Run("while publishing is frozen", func(t *testing.T) {
		l := taken(t)
		_, _, effects := l.table.Freeze(l.now, "ann", "moving", true)
		l.do(effects)
		l.strand(true, key)
		l.wait(time.Hour)
		l.wantChecks("web", false, 0)
		_, effects = l.table.Unfreeze("ann")
		l.do(effects)
		l.wantChecks("web", true, 0)
	})
}

// TestARestartKnowsWhatWasGivenBack: data planes go on checking it, until hdsd has settled and a
// checker is able to.
func TestARestartKnowsWhatWasGivenBack(t *testing.T) {
	given, kept := keyOf("given", addresses[0]), keyOf("kept", addresses[1])
	clusters := []*catalog.Cluster{web("given", addresses[0]), web("kept", addresses[1])}
	l := newLab(t)
	l.serve(clusters...)
	l.vote(given, up)
	l.vote(kept, up)
	l.wait(time.Second)
	l.strand(true, given)
	l.wait(5 * time.Minute)
	want := func(inChecks bool) {
		t.Helper()
		l.wantChecks("given", inChecks, 0)
		l.wantChecks("kept", false, 0)
	}
	want(true)

	for range 2 {
		l.start()
		l.say(clusters...)
		l.do(l.table.Start(l.now))
		want(true)
		l.wait(time.Minute) // settling: who is able to check it is not known yet
		want(true)
		l.do(l.table.Settle(l.now))
		l.strand(true, given)
		l.wait(time.Hour)
		want(true)
	}

	l.start()
	l.serve(clusters...)
	l.wait(time.Second)
	want(false)
	l.start()
	l.say(clusters...)
	want(false)
}

// TestCheckersThatComeAndGoWarmNoDataPlaneForEver: the only checker that is able to check a
// cluster, whose endpoints are replaced all along, ceases to be able and is able again.
func TestCheckersThatComeAndGoWarmNoDataPlaneForEver(t *testing.T) {
	l := newLab(t)
	at := func(i int) string { return fmt.Sprintf("10.1.%d.%d", i/250, i%250+1) }
	l.serve(web("web", at(0)))
	l.vote(keyOf("web", at(0)), up)
	l.wait(time.Second)
	l.wantChecks("web", false, 0)
	changes, before := 0, false
	look := func() {
		if after := len(l.clusters["web"].GetHealthChecks()) > 0; after != before {
			changes, before = changes+1, after
		}
	}
	const minutes = 5
	for i := range minutes * 60 / 2 {
		l.say(web("web", at(i), at(i+1)))
		l.strand(true, keyOf("web", at(i)))
		l.wait(time.Second)
		look()
		l.strand(false, keyOf("web", at(i)))
		l.vote(keyOf("web", at(i+1)), up)
		l.wait(time.Second)
		look()
	}
	if changes < 2 || changes > 2*minutes {
		t.Errorf("the cluster changed %d times for data planes in %d minutes, want 2 to %d", changes, minutes, 2*minutes)
	}
	l.wait(time.Minute)
	l.wantChecks("web", false, 0)
}

// TestDataPlanesCheckWhatHDSDDoesNot: the rest is exempt from their checks, once hdsd has
// verdicts on it.
func TestDataPlanesCheckWhatHDSDDoesNot(t *testing.T) {
	l := newLab(t)
	l.serve(partly("web", addresses[:2]...))
	l.wantChecks("web", true, 1) // as the source says
	l.vote(keyOf("web", addresses[0]), up)
	l.vote(keyOf("web", addresses[1]), up)
	l.wait(time.Second)
	l.wantChecks("web", true, 3)
	l.vote(keyOf("web", addresses[1]), down)
	l.wantPublished(keyOf("web", addresses[1]), down)
	excluded := keyOf("web", "10.0.0.8")
	if err := l.override(excluded, drained, 0); err != nil {
		t.Fatal(err)
	}
	l.wantPublished(excluded, drained)
	l.wantChecks("web", true, 3)

	l.say(web("web", addresses[:2]...)) // without the others
	l.wantChecks("web", false, 0)
	l.say(partly("web", addresses[:2]...))
	l.wantChecks("web", true, 3)
	l.strand(true, keyOf("web", addresses[0]))
	l.wait(5 * time.Minute)
	l.wantChecks("web", true, 1)
}

// TestClustersThatShareAnAssignmentAreExemptTogether, where each is to be.
func TestClustersThatShareAnAssignmentAreExemptTogether(t *testing.T) {
	assignment := partly("shared", addresses[0]).Source.Assignment
	share := func(k *catalog.Cluster, by *configv1.Config) *catalog.Cluster {
		from := *k.Source
		from.ServiceName, from.Assignment = "shared", assignment
		return catalog.Prepare(&from, catalog.NewRules(by))
	}
	publish := &configv1.Config{}
	shadow := &configv1.Config{Policies: []*configv1.Policy{{ClusterNameGlob: "b", Mode: configv1.Mode_SHADOW.Enum()}}}
	l := newLab(t)
	a, b := share(partly("a", addresses[0]), publish), share(partly("b", addresses[0]), publish)
	l.serve(a, b)
	l.vote(keyOf("a", addresses[0]), up)
	l.wait(time.Second)
	l.clusters["shared"] = l.clusters["b"]
	l.wantChecks("shared", true, 1) // b is not taken over
	l.vote(keyOf("b", addresses[0]), up)
	l.wait(time.Second)
	l.wantChecks("shared", true, 2)
	l.say(a, share(partly("b", addresses[0]), shadow))
	l.wantChecks("shared", true, 1)
}

// TestTakeoversAreGathered: data planes are not told of each cluster alone, nor of all.
func TestTakeoversAreGathered(t *testing.T) {
	const count = 1200
	var all []*catalog.Cluster
	for i := range count {
		all = append(all, web(fmt.Sprintf("c%d", i), addresses[0]))
	}
	l := newLab(t)
	l.serve(all...)
	for _, k := range all {
		l.vote(keyOf(k.Source.Name, addresses[0]), up)
	}
	for _, want := range []int{0, 500, 1000, count, count} {
		got, updates := 0, l.updates
		l.do(l.table.TakeOver(l.now))
		for _, k := range l.clusters {
			if len(k.GetHealthChecks()) == 0 {
				got++
			}
		}
		if got != want || l.updates-updates > 1 {
			t.Errorf("%d clusters are taken over, want %d; data planes got %d updates", got, want, l.updates-updates)
		}
		l.now = l.now.Add(time.Second)
	}
}

// TestClustersThatLeftDuringARestartAreForgotten: the stored names do not grow without end.
func TestClustersThatLeftDuringARestartAreForgotten(t *testing.T) {
	l := newLab(t)
	l.stored.TakenOver, l.stored.GivenBack = map[string]bool{"web": true, "left": true}, map[string]bool{"returned": true}
	l.start()
	l.say(web("web", addresses...))
	if len(l.stored.TakenOver) != 2 || len(l.stored.GivenBack) != 1 {
		t.Errorf("before hdsd has settled: %v, %v", l.stored.TakenOver, l.stored.GivenBack)
	}
	l.do(l.table.Start(l.now))
	l.do(l.table.Settle(l.now))
	if !l.stored.TakenOver["web"] || len(l.stored.TakenOver) != 1 || len(l.stored.GivenBack) != 0 {
		t.Errorf("after: %v, %v", l.stored.TakenOver, l.stored.GivenBack)
	}
}

// borrowing prepares a cluster whose health checks are hdsd's defaults.
func borrowing(name string, addresses ...string) *catalog.Cluster {
	from := sourceOf(name, addresses...)
	from.Config.HealthChecks = nil
	return catalog.Prepare(from, catalog.NewRules(&configv1.Config{}))
}

// mistaken prepares a cluster whose source has nothing but a mistake.
func mistaken(name string) *catalog.Cluster {
	from := sourceOf(name)
	from.Assignment, from.Rejected = nil, "a mistake"
	return catalog.Prepare(from, catalog.NewRules(&configv1.Config{}))
}

// takenOver makes a lab whose data planes leave the first endpoint of web to hdsd.
func takenOver(t *testing.T) *lab {
	l := newLab(t)
	l.serve(web("web", addresses[0]))
	l.vote(a1, up)
	l.wait(time.Second)
	l.wantChecks("web", false, 0)
	return l
}

// TestARestartAfterOwnChecksCameBack covers a cluster that loses its own checks and gets others, which
// data planes use, since an endpoint has no verdict yet.
func TestARestartAfterOwnChecksCameBack(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		l := takenOver(t)
		if restarts {
			l.start()
			l.serve(borrowing("web", addresses[0]))
		} else {
			l.say(borrowing("web", addresses[0]))
		}
		l.wantChecks("web", false, 0)
		l.say(web("web", addresses[:2]...))
		l.wantChecks("web", true, 0)
		l.start()
		l.serve(web("web", addresses[:2]...))
		l.wantChecks("web", true, 0)
	}
}

// TestMistakesAfterARestartEndNoTakeover covers a source that corrects its mistake only at the third
// attempt.
func TestMistakesAfterARestartEndNoTakeover(t *testing.T) {
	l := takenOver(t)
	l.start()
	l.serve(mistaken("web"))
	l.say(mistaken("web"))
	l.say(web("web", addresses[:2]...))
	l.wantChecks("web", false, 0)
}

// TestAClusterThatLeavesForAMomentDuringAStartStaysTakenOver, and one that stays away is forgotten.
func TestAClusterThatLeavesForAMomentDuringAStartStaysTakenOver(t *testing.T) {
	l := takenOver(t)
	l.start()
	l.say(web("web", addresses[:2]...))
	l.say()
	l.say(web("web", addresses[:2]...))
	l.wantChecks("web", false, 0)
	l.say()
	l.serve()
	if len(l.stored.TakenOver) > 0 {
		t.Errorf("stored are %v", l.stored.TakenOver)
	}
}
