package fleet

import (
	"fmt"
	"testing"
	"time"

	"hdsd/health"
)

const probationTime = 30 * time.Second

// watchful returns a lab with six established checkers and probation.
func watchful(t *testing.T) *lab {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	for i := range 6 {
		l.join(fmt.Sprintf("c%d", i))
	}
	l.pass(5 * report)
	l.wantOnProbation(0)
	return l
}

func (l *lab) wantOnProbation(want int) {
	l.Helper()
	if got := l.Figures().Probation; got != want {
		l.Errorf("%d are on probation, want %d", got, want)
	}
}

// say sets how the votes of newcomers compare.
func (l *lab) say(c Comparison, ids ...string) {
	for _, id := range ids {
		l.compared[id] = c
	}
}

// TestWhoDisagreesStaysOnProbation, however long; a short disagreement only delays.
func TestWhoDisagreesStaysOnProbation(t *testing.T) {
	l := watchful(t)
	l.say(Same, "n0", "n1", "n2")
	l.join("n0")
	l.join("n1")
	l.join("n2")
	l.say(Opposite, "n0")
	l.pass(20 * report)
	l.say(Opposite, "n1", "n2")
	l.pass(5 * report)
	l.say(Same, "n1")
	l.pass(10 * report)
	l.say(Same, "n2")
	l.pass(4 * report)
	l.wantOnProbation(2) // n1 has agreed for 34 s in all
	if l.OnProbation("n1") {
		t.Error("n1 waits though it disagreed only for a while")
	}
	l.pass(20 * report)
	if !l.OnProbation("n2") {
		t.Error("n2 disagreed for long and has not begun anew")
	}
	l.pass(time.Hour)
	l.wantOnProbation(1)
	for k := range l.Checkers() {
		if k.ID == "n0" && (k.Probation == nil || k.Probation.Wrong.IsZero() || k.Plan.Endpoints == 0) {
			t.Errorf("%+v", k)
		}
	}
}

// TestWhoSaysNothingStaysOnProbation, as one that is silent.
func TestWhoSaysNothingStaysOnProbation(t *testing.T) {
	l := watchful(t)
	l.say(Same, "n1")
	l.join("n0")
	l.join("n1")
	l.hush("n1")
	l.pass(time.Minute)
	l.wantOnProbation(2)
	if _, n := l.take(SilentReplaced); n > 0 || l.Figures().Silent != 1 {
		t.Errorf("%d silent newcomers are replaced", n)
	}
	l.speak("n1")
	l.pass(probationTime + 2*report)
	l.wantOnProbation(1)
}

// TestNewcomersThatComeAndGoMakeNoPlan: they have no seats.
func TestNewcomersThatComeAndGoMakeNoPlan(t *testing.T) {
	l := watchful(t)
	digest := l.Digest()
	for i := range 200 {
		k := worker(i)
		e := l.Connect(l.now, k)
		l.do(e)
		if n := len(l.has[k.ID]); n < 50 || n > 200 {
			t.Errorf("%s probes %d endpoints", k.ID, n)
		}
		gone := l.Disconnect(l.now, k.ID)
		l.do(gone)
		if e.Planned || gone.Planned || len(gone.GivenUp) != 1 {
			t.Errorf("%+v, %+v", e, gone)
		}
		l.pass(report / 2)
	}
	if l.Digest() != digest || len(l.checkers) != 6 || len(l.samples) > 0 {
		t.Errorf("left are %d checkers and %d samples", len(l.checkers), len(l.samples))
	}
}

// TestNewcomersOfOneIdentityDivideASample where others have certificates of their own.
func TestNewcomersOfOneIdentityDivideASample(t *testing.T) {
	l := watchful(t)
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprint("many", i))
		l.come("spiffe://prod/many", "1", 0, ids[i])
	}
	l.pass(report)
	l.lose(ids[0])
	l.come("spiffe://prod/many", "1", 0, ids[0])
	if n := len(l.samples[ids[0]]); n == 0 || n > 30 {
		t.Errorf("the sample of one of ten has %d endpoints", n)
	}
}

// TestOneFounderWaitsForOthers: two of three come later, and are founders too.
func TestOneFounderWaitsForOthers(t *testing.T) {
	l := newLab(t, options(), 0, 60)
	l.SetProbation(l.now, probationTime)
	for i := range 3 {
		l.join(fmt.Sprintf("c%d", i))
		l.wantOnProbation(0)
		if i == 0 {
			l.pass(20 * report)
		}
	}
	l.pass(5 * report)
	for i := range 3 {
		if n := l.Part(fmt.Sprintf("c%d", i)).Endpoints; n == 0 {
			t.Errorf("c%d has no seats", i)
		}
	}
	if _, n := l.take(NewcomersEstablished); n != 3 {
		t.Errorf("%d are established", n)
	}
	l.join("c3")
	l.wantOnProbation(1)
}

// TestFoundersThatHaveNotVotedYetKeepTheirSeats: hdsd cannot keep up with a first start, and
// has heard two of ten when their probation would be over. It waits for most, and then for
// the others.
func TestFoundersThatHaveNotVotedYetKeepTheirSeats(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	l.reporting(10, 2)
	l.pass(probationTime + 5*report)
	l.wantOnProbation(0)
	for i := range 10 {
		if i < 6 {
			l.silent[fmt.Sprintf("c%d", i)] = false
		}
		if n := l.Part(fmt.Sprintf("c%d", i)).Endpoints; n < 90 {
			t.Errorf("c%d has %d endpoints", i, n)
		}
	}
	l.pass(5 * report)
	if _, n := l.take(NewcomersEstablished); n != 6 {
		t.Errorf("%d are established, want those that have voted", n)
	}
	l.wantOnProbation(0)
	for _, id := range numbered(6, 9) {
		l.silent[id] = false
	}
	l.pass(5 * report)
	if _, n := l.take(NewcomersEstablished); n != 3 {
		t.Errorf("%d more are established, want those that have voted", n)
	}
	l.pass(probationTime)
	l.wantOnProbation(1)
}

// reporting connects c0, c1..., of which only the first so many report.
func (l *lab) reporting(checkers, first int) {
	for i, id := range numbered(0, checkers) {
		l.join(id)
		l.silent[id] = i >= first
	}
}

// withLateFounders is a lab in which c0 to c5 are established and c6 to c9 are late founders.
func withLateFounders(t *testing.T) *lab {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	l.reporting(10, 6)
	l.pass(5 * report)
	if _, n := l.take(NewcomersEstablished); n != 6 {
		t.Fatalf("%d are established", n)
	}
	return l
}

// TestLateFoundersKeepTheirSeats where they or hdsd begin anew soon after the first were
// established. Nobody else does under their ids, and they have no longer than a probation.
func TestLateFoundersKeepTheirSeats(t *testing.T) {
	late, begin := numbered(6, 10), withLateFounders
	back := func(l *lab) {
		for i := range 10 {
			l.join(fmt.Sprintf("c%d", i))
		}
	}
	established := func(l *lab, want int) {
		l.Helper()
		for _, id := range late {
			if n := l.Part(id).Endpoints; n < 90 {
				l.Errorf("%s has %d endpoints", id, n)
			}
		}
		if l.wantOnProbation(0); len(l.probation.roll.records) != 10 || l.probation.roll.late != 10-want {
			l.Errorf("%d are established and %d late, want %d and %d", len(l.probation.roll.records)-l.probation.roll.late, l.probation.roll.late, want, 10-want)
		}
	}
	t.Run("hdsd restarts", func(t *testing.T) {
		l := begin(t)
		l.restart()
		back(l)
		established(l, 6)
		l.pass(settle + 5*report)
		established(l, 10)
		l.restart()
		back(l)
		established(l, 10)
	})
	t.Run("hdsd restarts, and they are back first", func(t *testing.T) {
		l := begin(t)
		o := options()
		o.Settle = 10 * report
		l.restartWith(o)
		for _, id := range late {
			l.join(id)
		}
		l.pass(5 * report)
		back(l)
		established(l, 6)
		l.pass(10 * report)
		established(l, 10)
	})
	t.Run("all connect anew", func(t *testing.T) {
		l := begin(t)
		l.lose(numbered(0, 10)...)
		back(l)
		established(l, 6)
	})
	t.Run("the established connect anew", func(t *testing.T) {
		l := begin(t)
		l.lose(numbered(0, 6)...)
		l.pass(report)
		for _, id := range numbered(0, 6) {
			l.join(id)
		}
		established(l, 6)
	})
	t.Run("they connect anew", func(t *testing.T) {
		l := begin(t)
		l.lose(late...)
		back(l)
		established(l, 6)
		l.speak(late...)
		l.pass(5 * report)
		established(l, 10)
	})
	t.Run("another has their id", func(t *testing.T) {
		l := begin(t)
		l.lose(late...)
		for _, id := range late {
			l.do(l.Connect(l.now, health.Checker{ID: id, Identity: "stranger", Locality: health.Locality{Region: "r", Zone: "1"}}))
		}
		l.pass(report)
		l.wantOnProbation(len(late))
	})
	t.Run("they say nothing", func(t *testing.T) {
		l := begin(t)
		for range 10 {
			l.lose(late...)
			back(l)
			l.hush(late...)
			l.pass(4 * report)
		}
		l.wantOnProbation(len(late))
		if l.probation.roll.late > 0 {
			t.Errorf("%d are late still", l.probation.roll.late)
		}
	})
	t.Run("they are gone", func(t *testing.T) {
		l := begin(t)
		for _, id := range late {
			l.lose(id)
			l.pass(5 * grace)
		}
		if l.probation.roll.late > 0 {
			t.Errorf("%d are late still", l.probation.roll.late)
		}
		l.join("c6")
		l.pass(report)
		l.wantOnProbation(1)
	})
}

// TestLateFoundersYieldToThoseBeforeThem, as stand-ins do.
func TestLateFoundersYieldToThoseBeforeThem(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	l.join("c0")
	l.join("c1")
	l.pass(5 * report)
	l.lose("c0", "c1")
	l.pass(report)
	others := numbered(10, 20)
	l.say(Opposite, others...) // so they wait for those before them
	for i, id := range others {
		l.join(id)
		l.silent[id] = i > 5
	}
	for began := l.now; l.probation.roll.late == 0; l.pass(report / 2) {
		if l.now.Sub(began) > 8*time.Minute {
			t.Fatal("nobody stands in")
		}
	}
	l.join("c0")
	l.pass(report)
	clear(l.silent)
	l.pass(4 * report)
	l.wantOnProbation(len(others))
}

// TestAFewFoundersDoNotWaitForEver for most, which say nothing.
func TestAFewFoundersDoNotWaitForEver(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.SetProbation(l.now, probationTime)
	for i := range 10 {
		id := fmt.Sprintf("c%d", i)
		l.join(id)
		l.silent[id] = i > 1
	}
	l.pass(3*probationTime + 10*report)
	if _, n := l.take(NewcomersEstablished); n != 2 {
		t.Errorf("%d are established", n)
	}
	l.pass(probationTime)
	l.wantOnProbation(8)
}

// TestWithoutProbationNobodyWaits, and it can be turned on and off.
func TestWithoutProbationNobodyWaits(t *testing.T) {
	l := newLab(t, options(), 6, 60)
	l.join("c6")
	l.wantOnProbation(0)
	l.SetProbation(l.now, probationTime)
	l.join("n0")
	l.wantOnProbation(1)
	l.join("c6") // on another stream
	l.wantOnProbation(1)
	l.SetProbation(l.now, 0)
	l.tick()
	l.wantOnProbation(0)
	l.pass(report)
	if l.Part("n0").Endpoints == 0 {
		t.Error("n0 has no seats")
	}
}

// TestEndpointsThatGoLeaveSamples, and one that is changed is sent anew.
func TestEndpointsThatGoLeaveSamples(t *testing.T) {
	l := watchful(t)
	l.join("n0")
	l.pass(report)
	var id health.EndpointID
	for id = range l.samples["n0"] {
		break
	}
	sent := l.sent["n0"]
	l.Renew(id)
	l.pass(report)
	if l.sent["n0"] == sent {
		t.Error("the newcomer is not sent what has changed")
	}
	l.remove(id)
	l.do(l.Apply(l.now))
	if _, has := l.samples["n0"][id]; has {
		t.Error("the sample has an endpoint that is gone")
	}
}

// TestWhoIsNotSeenForLongIsForgotten, and nobody who is connected.
func TestWhoIsNotSeenForLongIsForgotten(t *testing.T) {
	l := watchful(t)
	l.lose("c5")
	l.pass(grace + report)
	l.now = l.now.Add(keepEstablished)
	forgotten := map[string]bool{}
	for range 2 {
		e := l.Tick(l.now, l.now)
		for id, row := range e.Established {
			forgotten[id] = row == nil
		}
		l.do(e)
		l.now = l.now.Add(sweepEvery)
	}
	if !forgotten["c5"] || forgotten["c0"] || len(l.probation.roll.records) != 5 {
		t.Errorf("forgotten are %v, left %d", forgotten, len(l.probation.roll.records))
	}
}

// TestTheLongestUnseenIsForgottenFirst where too many are remembered.
func TestTheLongestUnseenIsForgottenFirst(t *testing.T) {
	l := watchful(t)
	for i := range mostEstablished + 100 { // the first of them was seen last
		l.setEstablished(fmt.Sprintf("gone%05d", i), &Established{Seen: l.now.Add(-time.Duration(i) * time.Second)})
	}
	l.effects()
	l.now = l.now.Add(sweepEvery)
	l.do(l.Tick(l.now, l.now))
	for i := range mostEstablished + 100 {
		if _, kept := l.probation.roll.records[fmt.Sprintf("gone%05d", i)]; kept != (i < mostEstablished) {
			t.Fatalf("number %d is kept: %v; %d in all", i, kept, len(l.probation.roll.records))
		}
	}
}
