package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hdsd/replica/clusters"
)

// known returns what the releases of both replicas know of a message.
func (p *process) known(m Message, to string) Message {
	switch m := m.(type) {
	case Report:
		if p.older[p.id] || p.older[to] {
			m.Clusters = nil
		}
		return m
	case Directions:
		if p.older[p.id] || p.older[to] {
			m.Wanted = nil
		}
		return m
	}
	return m
}

// TestALeaderDoesNotWaitForAnOlderRelease covers a new leader whose followers are of a release that tells no clusters:
// decisions resume as soon as these have reported.
func TestALeaderDoesNotWaitForAnOlderRelease(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newFleet(t, seed)
			l.older["r1"], l.older["r2"], l.prompt = true, true, true
			l.log.endEpoch()
			for l.log.leader == nil || l.log.leader.id != "r3" || l.log.leader.replica.term == nil {
				if l.log.leader != nil && l.log.leader.id != "r3" {
					l.log.endEpoch()
				}
				l.pass(time.Millisecond)
			}
			for r := l.log.leader.replica; !r.term.opened; l.pass(time.Millisecond) {
				if l.now.Sub(r.term.started) > gatherPatience/2 {
					t.Fatalf("the leader has waited %v", l.now.Sub(r.term.started))
				}
			}
		})
	}
}

// TestClustersOfAReplicaThatIsOfAnOlderReleaseNow covers a replica that goes back to a release that tells no clusters, so
// quickly that its leader has not lost it. The clusters that it has told are those of a lost replica from then on.
func TestClustersOfAReplicaThatIsOfAnOlderReleaseNow(t *testing.T) {
	l := newUnion(t, 1)
	for l.log.leader == nil || l.log.leader.id == "r3" {
		l.log.endEpoch()
		l.pass(5 * time.Second)
	}
	l.pass(30 * reportInterval)
	leader := l.leading()
	alone := func() bool { // whether the leader has checks for the endpoints that only r3 has
		return slices.ContainsFunc(l.checkedBy(), func(address string) bool { return address == "10.0.0.30:80" })
	}
	if !alone() {
		t.Fatal("nobody checks what only r3 has")
	}
	l.older["r3"] = true
	link := leader.replica.links["r3"].number
	leader.step(Received{"r3", link, Report{Term: leader.replica.term.id, Full: true}})
	if got := leader.replica.Differences(""); slices.ContainsFunc(got, func(d clusters.Difference) bool { return d.Replica == "r3" }) {
		t.Errorf("the leader knows differences of a replica that tells none: %v", got)
	}
	l.pass(clusters.Patience - time.Minute)
	if !alone() {
		t.Error("the clusters of the replica went too early")
	}
	l.pass(2 * time.Minute)
	if alone() {
		t.Error("what the replica has told before stays for ever")
	}
}

// TestAReplicaThatIsOfANewerReleaseNow covers that the leader waits for the clusters of a replica as soon as that tells
// some, although it told none before.
func TestAReplicaThatIsOfANewerReleaseNow(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	other := l.running()[0]
	if other == leader {
		other = l.running()[1]
	}
	id, link := leader.replica.term.id, leader.replica.links[other.id].number
	leader.step(Received{other.id, link, Report{Term: id, Full: true}})
	if !leader.replica.term.knows(other.id) {
		t.Error("the leader waits for clusters that nobody tells")
	}
	leader.step(Received{other.id, link, Report{Term: id, Full: true, Clusters: &clusters.Update{
		Begin: true, Changed: []clusters.Listing{{Name: "of-the-newer", Digest: 1}},
	}}})
	if leader.replica.term.knows(other.id) {
		t.Error("the leader does not wait for the rest of the list")
	}
}

// checkedBy returns the addresses that checkers check.
func (l *lab) checkedBy() (addresses []string) {
	for _, k := range l.checkers {
		if k.spec != nil {
			addresses = append(addresses, k.spec.Addresses...)
		}
	}
	return addresses
}

// TestUpgradesSurviveFaults covers random faults while replicas change between a release that tells clusters and one
// that tells none.
func TestUpgradesSurviveFaults(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newFleet(t, seed)
			for range 40 {
				if l.fault(); l.IntN(4) == 0 {
					if all := l.running(); len(all) > 1 {
						p := all[l.IntN(len(all))]
						l.older[p.id] = !l.older[p.id]
						l.kill(p.id)
					}
				}
				l.pass(l.between(50*time.Millisecond, 4*time.Second))
			}
			l.setCluster(prepare(web("web", "/", 12, 4))[0])
			l.repair()
			l.pass(90 * reportInterval)
			l.settled("at the end")
			l.explained()
			l.checkOrders()
			l.checkHistory()
		})
	}
}
