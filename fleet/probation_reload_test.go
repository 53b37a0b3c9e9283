package fleet

import (
	"testing"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// TestProbationThatIsSwitchedOffAndOnLeavesNoDoorOpen: founders are established at once
// without probation. Who comes after it is back is a newcomer as any other.
func TestProbationThatIsSwitchedOffAndOnLeavesNoDoorOpen(t *testing.T) {
	for _, between := range []time.Duration{report / 2, 10 * report} {
		l := newLab(t, options(), 0, 600)
		l.SetProbation(l.now, probationTime)
		for _, id := range numbered(0, 6) {
			l.join(id)
		}
		l.pass(report)
		l.SetProbation(l.now, 0)
		l.pass(between)
		l.wantOnProbation(0)
		l.SetProbation(l.now, probationTime)
		l.pass(report)
		l.say(Opposite, "s0", "s1", "s2")
		for _, id := range []string{"s0", "s1", "s2"} {
			l.join(id)
		}
		l.pass(20 * report)
		l.wantOnProbation(3)
		if n := l.seats["s0"]; n > 0 {
			t.Errorf("after %v without probation: a stranger has %d seats", between, n)
		}
	}
}

// TestOneThatReportsAgainEndsTheFounding: newcomers are founders while the only established
// checker reports nothing. Once it reports again, they are on probation.
func TestOneThatReportsAgainEndsTheFounding(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	l.join("c0")
	l.pass(probationTime + 2*report)
	l.wantOnProbation(0)
	l.hush("c0")
	l.pass(5 * report)
	l.say(Opposite, "s0", "s1", "s2", "s3")
	l.join("s0")
	l.join("s1")
	l.pass(report)
	l.wantOnProbation(0)
	l.speak("c0")
	l.pass(report)
	l.wantOnProbation(2)
	l.join("s2")
	l.join("s3")
	l.pass(20 * report)
	l.wantOnProbation(4)
}

// TestALostFounderIsNotThere: it is established where probation is switched off, and still
// keeps nobody waiting.
func TestALostFounderIsNotThere(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	l.join("c0")
	l.lose("c0")
	l.SetProbation(l.now, 0)
	l.tick()
	l.SetProbation(l.now, probationTime)
	l.pass(2 * grace)
	l.join("c1")
	l.pass(2 * report)
	l.wantOnProbation(0)
	if l.seats["c1"] != 600 {
		t.Errorf("the only checker has %d seats", l.seats["c1"])
	}
}

// TestWhoStoodInChecksWhatNobodyElseCan: an earlier checker is back, and is not able to check
// what a stand-in checked. The votes of the stand-in go on counting there.
func TestWhoStoodInChecksWhatNobodyElseCan(t *testing.T) {
	const grpc = health.Ability("grpc")
	l := newLab(t, options(), 0, 1)
	for id := range health.EndpointID(30) {
		l.present[id] = true
		l.Upsert(assign.Endpoint{ID: id, Hash: health.Hash(id+1) * 0x9e3779b97f4a7c15, Class: l.Class(assign.Class{Needs: []health.Ability{grpc}}), Redundancy: 2, Rate: 1})
	}
	l.do(l.Apply(l.now))
	l.SetProbation(l.now, probationTime)
	join := func(id string, able ...health.Ability) {
		k := health.Checker{ID: id, Locality: health.Locality{Region: "r", Zone: "1"}, Abilities: health.Abilities{}}
		for _, a := range able {
			k.Abilities[a] = struct{}{}
		}
		l.do(l.Connect(l.now, k))
	}
	join("c0", grpc)
	l.pass(probationTime + 2*report)
	l.lose("c0")
	l.pass(2 * grace)
	l.say(Same, "c1")
	join("c1", grpc)
	l.pass(20 * report)
	if l.seats["c1"] != 30 {
		t.Fatalf("the stand-in has %d seats", l.seats["c1"])
	}
	join("c0")
	l.SetProbation(l.now, probationTime) // newcomers are looked at in the next tick
	l.pass(5 * report)
	l.wantOnProbation(1)
	if n := len(l.votes["c1"]); n != 30 {
		t.Errorf("votes of the one that stood in are expected on %d endpoints", n)
	}
}

// TestAnotherIdentityWhileSettlingHasNoSeats, though the plan knows its id already, without
// seats.
func TestAnotherIdentityWhileSettlingHasNoSeats(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		l := newLab(t, options(), 0, 0)
		l.Fleet = New(options(), l)
		l.Restore(nil)
		l.RestoreEstablished(map[string]Established{"c0": {Seen: l.now}, "c1": {Seen: l.now}})
		l.SetProbation(l.now, probationTime)
		l.Begin(l.now)
		for id := range health.EndpointID(30) {
			l.add(id)
		}
		l.do(l.Apply(l.now))
		l.join("c0")
		l.lose("c0")
		l.do(l.Connect(l.now, health.Checker{ID: "c0", Identity: "stranger", Locality: health.Locality{Region: "r", Zone: "1"}}))
		l.join("c1")
		if leaves {
			l.lose("c0")
		}
		l.say(Opposite, "c0")
		l.pass(20 * report)
		if l.seats["c0"] != 0 || l.seats["c1"] != 30 || l.OnProbation("c0") == leaves {
			t.Errorf("it leaves: %v; seats: %v", leaves, l.seats)
		}
	}
}

// TestASampleThatANewcomerCannotCheckAnyMore is made again of what it can.
func TestASampleThatANewcomerCannotCheckAnyMore(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	for _, id := range numbered(0, 6) {
		l.join(id)
	}
	l.pass(probationTime)
	l.say(Same, "n0")
	l.join("n0")
	l.pass(3 * report)
	l.wantOnProbation(1)
	l.beyond = map[health.EndpointID]string{}
	for id := range l.samples["n0"] {
		l.beyond[id] = "n0"
		l.Renew(id)
	}
	l.pass(probationTime + 3*report)
	l.wantOnProbation(0)
}

// TestProbationThatIsSwitchedOnSparesThoseAway: a checker whose seats are kept is not a newcomer when it is
// back, whether it was lost just now or is not back yet after a restart.
func TestProbationThatIsSwitchedOnSparesThoseAway(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		l := newLab(t, options(), 6, 600)
		if restarts {
			l.restart()
			for _, id := range numbered(1, 6) {
				l.join(id)
			}
		} else {
			l.lose("c0")
		}
		l.pass(report)
		l.SetProbation(l.now, probationTime)
		l.pass(report)
		l.join("c0")
		l.pass(report)
		l.wantOnProbation(0)
		l.lose("c0")
		l.pass(2 * grace)
		l.say(Opposite, "s0")
		l.join("s0")
		l.pass(report)
		l.wantOnProbation(1)
	}
}
