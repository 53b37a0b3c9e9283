package clusters

import (
	"fmt"
	"testing"

	"hdsd/catalog"
	"hdsd/source"
)

// TestVersionsOnTheirWay covers a roll-out that reaches two followers before the leader, which has asked both for the
// new version and has yet to get it: the version of before is not taken for the new one.
func TestVersionsOnTheirWay(t *testing.T) {
	f := newUnionOf(t, "r1", "r2", "r3")
	for _, id := range []string{"r1", "r2", "r3"} {
		f.deliver(id, map[string]*source.Cluster{"web": web("web", "/", 1, 2)}, true)
	}
	f.exchange()
	tell := func(id string) { f.union.Apply(f.now, id, f.owns[id].Take()) }
	ask := func(id string) { f.owns[id].Want(f.union.Wanted(id)) }
	next := map[string]*source.Cluster{"web": web("web", "/", 3)}
	f.deliver("r3", next, true)
	tell("r3")
	ask("r3")
	f.deliver("r2", next, true)
	tell("r2")
	f.drain(true)
	f.wants("web / 1 2")
	ask("r2")
	for _, id := range []string{"r3", "r2"} {
		if f.owns[id].Due() {
			tell(id)
		}
	}
	f.drain(true)
	f.wants("web / 1 2 3")

	f.deliver("r1", next, true)
	f.exchange()
	f.wants("web / 3")
	last := map[string]*source.Cluster{"web": web("web", "/", 4)}
	f.deliver("r2", last, true)
	tell("r2")
	f.union.Lose(f.now, "r2") // before it tells what has changed
	f.owns["r2"].Restart()
	f.exchange()
	f.wants("web / 3 4")
}

// TestContentsThatNeverCame covers a replica that is lost after it has told the names of its clusters: the leader does
// not know them.
func TestContentsThatNeverCame(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.deliver("r1", nil, true)
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1)}, true)
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	f.union.Lose(f.now, "r2")
	if f.union.Knows("r2") {
		t.Error("the content of a is not known")
	}
	f.owns["r2"].Restart()
	f.exchange()
	if f.wants("a / 1"); !f.union.Knows("r2") {
		t.Error("all of its clusters are known")
	}
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 2)}, true)
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	if !f.union.Knows("r2") {
		t.Error("a version of a is known, and the next one is on its way")
	}
}

// TestTheLatestVersionOfAWantedCluster covers a cluster that changes faster than the leader asks for it.
func TestTheLatestVersionOfAWantedCluster(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.deliver("r1", nil, true)
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1)}, true)
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	f.owns["r2"].Want(f.union.Wanted("r2"))
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 2)}, true)
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	f.drain(true)
	f.wants("a / 2")
}

// TestRestartedReplicas covers a replica whose sources have yet to answer after its restart: what it had before stays
// until they have.
func TestRestartedReplicas(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.deliver("r1", map[string]*source.Cluster{"a": web("a", "/", 1)}, true)
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1, 2), "b": web("b", "/", 3), "c": web("c", "/", 4)}, true)
	f.exchange()
	f.wants("a / 1 2; b / 3; c / 4")
	restart := func() {
		f.union.Lose(f.now, "r2")
		f.owns["r2"] = NewOwn()
		f.latest["r2"] = map[string]*catalog.Cluster{}
		f.deliver("r2", nil, false)
		f.exchange()
	}
	restart()
	f.wants("a / 1 2; b / 3; c / 4")
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1), "b": web("b", "/", 5)}, false)
	f.exchange()
	f.wants("a / 1 2; b / 3 5; c / 4")
	restart()
	f.wants("a / 1 2; b / 3 5; c / 4")
	f.deliver("r2", map[string]*source.Cluster{"b": web("b", "/", 5)}, true)
	f.exchange()
	f.wants("a / 1; b / 5")
	f.union.Lose(f.now, "r2")
	restart()
	f.union.Lose(f.now, "r2")
	f.union.Forget(f.now.Add(Patience))
	f.drain(true)
	f.wants("a / 1")
}

// TestReadingTakesSeveralSteps covers that other versions of many clusters, which add no endpoint, are read in several
// steps.
func TestReadingTakesSeveralSteps(t *testing.T) {
	f := newUnionOf(t, "r1", "r2", "r3")
	f.union.budget = 100
	same, others := map[string]*source.Cluster{}, map[string]*source.Cluster{}
	for i := range 20 {
		name := fmt.Sprint("c", i)
		same[name], others[name] = web(name, "/", 1, 2, 3, 4, 5), web(name, "/b", 1, 2, 3, 4, 5)
	}
	f.deliver("r1", same, true)
	f.deliver("r2", same, true)
	f.exchange()
	f.deliver("r3", others, true)
	f.union.Apply(f.now, "r3", f.owns["r3"].Take())
	f.owns["r3"].Want(f.union.Wanted("r3"))
	f.union.Apply(f.now, "r3", f.owns["r3"].Take())
	for steps := 1; ; steps++ {
		if d := f.union.Next(true); d != nil && len(d.Changed) > 0 {
			t.Errorf("%d clusters change", len(d.Changed))
		}
		if !f.union.Due() {
			if steps != 2 {
				t.Errorf("%d steps for 200 endpoints", steps)
			}
			return
		}
	}
}

// TestARefusalShows covers a cluster with endpoints of another replica, of which the leader refuses its next version.
func TestARefusalShows(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.deliver("r1", map[string]*source.Cluster{"web": web("web", "/", 1)}, true)
	f.deliver("r2", map[string]*source.Cluster{"web": web("web", "/", 2)}, true)
	f.exchange()
	odd := web("web", "/odd", 3)
	odd.Rejected = "it is odd"
	refused := catalog.PrepareRejected(odd, f.latest["r1"]["web"], ruleSet)
	d := &catalog.Delivery{Rules: ruleSet, Answered: map[string]bool{"local": true}, Complete: true, Changed: []catalog.Change{{Cluster: refused}}}
	f.owns["r1"].Deliver(d)
	f.union.OwnChanged(f.now, d)
	f.exchange()
	f.wants("web / 1 2")
	if got := f.have["web"].Rejected; got != "it is odd" {
		t.Errorf("the refusal is %q", got)
	}
	f.deliver("r1", map[string]*source.Cluster{"web": refused.Source}, true)
	f.exchange()
	if got := f.have["web"].Rejected; got != "" {
		t.Errorf("the refusal is %q", got)
	}
}

// TestChangesOfALostReplica covers changes by a replica that the leader counts as lost, or has forgotten: it tells all of
// its clusters anew before they count. Otherwise they would stay for ever if it does not.
func TestChangesOfALostReplica(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.deliver("r1", nil, true)
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1)}, true)
	f.exchange()
	b := web("b", "/", 2)
	late := &Update{Changed: []Listing{{"b", DigestOf(b), b}}, End: true}
	f.union.Lose(f.now, "r2")
	f.union.Apply(f.now, "r2", late)
	f.drain(true)
	f.wants("a / 1")
	f.now = f.now.Add(Patience)
	f.union.Forget(f.now)
	f.union.Apply(f.now, "r2", late)
	f.drain(true)
	f.wants("")
	f.owns["r2"].Restart()
	f.exchange()
	f.wants("a / 1")
}
