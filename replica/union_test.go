package replica

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica/clusters"
	"hdsd/source"
	"hdsd/source/sample"
)

// newUnion starts three replicas with different clusters: each has endpoints, or a cluster, that the others lack.
func newUnion(t *testing.T, seed uint64) *lab {
	l := newFleet(t, seed)
	l.variants = map[string][]*catalog.Cluster{
		"r1": prepare(web("pay", "/", 1, 5), web("shop", "/", 6, 6), web("web", "/", 12, 4), web("new", "/", 40, 3)),
		"r2": prepare(web("pay", "/", 1, 5), web("shop", "/", 4, 8), web("web", "/", 12, 7)),
		"r3": prepare(web("shop", "/", 6, 6), web("web", "/b", 12, 2), web("more", "/", 30, 3)),
	}
	for _, p := range l.running() {
		l.schedule(l.between(0, 3*time.Second), p.deliver)
	}
	l.pass(60 * reportInterval)
	l.settledOwn("at the beginning")
	return l
}

// settledOwn checks that each replica publishes the truth about the endpoints of its own clusters.
func (l *lab) settledOwn(when string) {
	l.Helper()
	for _, p := range l.running() {
		for name, k := range p.clusters {
			for i := range k.Hashes {
				key := k.Checked.Key(i)
				course, want := p.planes[key], l.trueStatus(key.Address)
				if len(course) == 0 || course[len(course)-1].status != want {
					l.Errorf("%s: %s publishes %s of %s as %v, which is %v", when, p.id, key.Address, name, course, want)
				}
			}
		}
	}
}

// TestTheUnionIsChecked covers endpoints and clusters that one replica has alone: the leader, or another one. No
// change of leader moves the check of one.
func TestTheUnionIsChecked(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newUnion(t, seed)
			l.prompt = true // the clusters arrive within a second
			moves := func() (count int) {
				for _, p := range l.running() {
					count += p.moves
				}
				return count
			}
			before, promoted := moves(), l.promoted
			for range 8 {
				l.log.endEpoch()
				l.pass(l.between(3*time.Second, 6*time.Second))
				l.turn(fmt.Sprintf("10.0.0.%d:80", 1+l.IntN(42)))
			}
			l.pass(30 * reportInterval)
			l.settledOwn("at the end")
			if after := moves(); after != before {
				t.Errorf("%d specifiers for checkers", after-before)
			}
			if l.promoted-promoted < 8 {
				t.Errorf("%d promotions", l.promoted-promoted)
			}
			l.explained()
		})
	}
}

// TestDifferentReplicasSurviveFaults covers random faults of everything while replicas have different clusters.
func TestDifferentReplicasSurviveFaults(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newUnion(t, seed)
			for range 40 {
				l.fault()
				l.pass(l.between(50*time.Millisecond, 4*time.Second))
			}
			l.repair()
			l.pass(90 * reportInterval)
			l.settledOwn("at the end")
			l.explained()
			l.checkOrders()
			l.checkHistory()
		})
	}
}

// TestRestartsEndNoHealth covers replicas that start again, whose sources answer later. Meanwhile none of their endpoints
// leaves, not even those that they have alone.
func TestRestartsEndNoHealth(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newUnion(t, seed)
			l.slow = true
			left := len(l.log.gone)
			for range 10 {
				ids := slices.Sorted(maps.Keys(l.processes))
				l.kill(ids[l.IntN(len(ids))])
				l.pass(l.between(3*time.Second, 20*time.Second))
				l.turn(fmt.Sprintf("10.0.0.%d:80", 1+l.IntN(42)))
			}
			l.pass(90 * reportInterval)
			l.settledOwn("at the end")
			if gone := l.log.gone[left:]; len(gone) > 0 {
				t.Errorf("endpoints left: %s", gone)
			}
			l.explained()
			l.checkHistory()
		})
	}
}

// prepare makes clusters.
func prepare(clusters ...*source.Cluster) (all []*catalog.Cluster) {
	for _, k := range clusters {
		all = append(all, catalog.Prepare(k, rules))
	}
	return all
}

// web returns a cluster with endpoints of its own.
func web(name, path string, first, count int) *source.Cluster {
	var addresses []string
	for i := range count {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:80", first+i))
	}
	return sample.WithPath(name, path, addresses...)
}

// TestALeaderKnowsTheReplicas covers that a leader hears from etcd which replicas there are before it leads: it would
// not wait for their clusters, and give up endpoints that they have.
func TestALeaderKnowsTheReplicas(t *testing.T) {
	r := New(Options{ID: "r1", Timing: machine.Timing{Report: reportInterval, Grace: grace, Settle: settle}, MaxPayload: 1 << 20}, log.State{TakenOver: map[string]bool{}}, 0)
	leads := false
	take := func(e Effect) {
		if _, ok := e.(Promoted); ok {
			leads = true
		}
	}
	r.Step(start, Local{machine.Delivered{Delivery: catalog.Delivery{Rules: rules, Complete: true}}}, take)
	r.Step(start, Begun{}, take)
	r.Step(start, Won{Epoch: 7}, take)
	r.Step(start.Add(time.Millisecond), Tick{}, take)
	if leads {
		t.Error("it leads, and does not know whom")
	}
	r.Step(start.Add(2*time.Millisecond), Members{Replicas: []string{"r1"}, Leader: "r1", Epoch: 7}, take)
	if !leads {
		t.Error("it does not lead")
	}
}

// TestEarlyReportsAreBounded covers a replica that reports without end while a leader gathers clusters: the leader forgets
// its reports, and asks for all again.
func TestEarlyReportsAreBounded(t *testing.T) {
	r := New(Options{ID: "r1", Timing: machine.Timing{Report: reportInterval, Grace: grace, Settle: settle}, MaxPayload: 1 << 20}, log.State{TakenOver: map[string]bool{}}, 0)
	welcomes := 0
	take := func(e Effect) {
		if s, ok := e.(Send); ok {
			if _, ok := s.Message.(Welcome); ok {
				welcomes++
			}
		}
	}
	step := func(e Event) { r.Step(start, e, take) }
	step(Local{machine.Delivered{Delivery: catalog.Delivery{Rules: rules, Complete: true}}})
	step(Begun{})
	step(Members{Replicas: []string{"r1", "r2", "r3"}, Leader: "r1", Epoch: 7})
	step(LinkOpened{"r2", 1})
	step(LinkOpened{"r3", 2})
	step(Won{Epoch: 7})
	report := Report{Term: r.term.id, Full: true, Sessions: []Session{{Checker: "c", Votes: make([]Vote, maxVotes)}}, Clusters: &clusters.Update{Begin: true}}
	step(Received{"r3", 2, report})
	for range 2*maxEarly/maxVotes + 2 {
		step(Sent{"r2", 1})
		step(Received{"r2", 1, report})
		if r.term.parts > maxEarly {
			t.Fatalf("%d parts wait", r.term.parts)
		}
	}
	if r.term.opened || welcomes != 4 {
		t.Errorf("%d welcomes", welcomes)
	}
	step(LinkClosed{"r2", 1})
	if len(r.term.early) != 1 || r.term.parts != partsOf(&report) {
		t.Errorf("%d reports with %d parts remain of another replica", len(r.term.early), r.term.parts)
	}
}
