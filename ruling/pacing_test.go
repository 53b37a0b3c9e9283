package ruling_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// The most changes in a row, and how long one more takes.
const (
	inARow  = 10
	oneMore = 5 * time.Second
)

// pacedLab counts what the votes come to, and what becomes of it. Its endpoints have no
// spare changes.
type pacedLab struct {
	*lab
	key     health.Endpoint
	since   time.Time
	changes int // of the votes
	leftOut int // by Effects.LeftOut
}

func newPacedLab(t testing.TB) *pacedLab {
	l := &pacedLab{lab: newLab(t), key: keyOf("web", addresses[0])}
	l.table.Spare = 0
	l.serve(web("web", addresses[0], addresses[1]))
	l.since = l.now
	return l
}

// turn makes the votes come to a verdict.
func (l *pacedLab) turn(to health.Status) {
	id, _ := l.table.Find(l.key.Hash())
	before := l.verdicts[id]
	if before.Status == to {
		return
	}
	l.changes++
	l.verdicts[id] = health.Verdict{Status: to, Since: l.now, Reason: "said"}
	effects := l.table.Decide(l.now, []aggregate.Change{{Endpoint: id, From: before.Status, To: to, FromSince: before.Since, Reason: "said"}}, nil)
	l.leftOut += effects.LeftOut
	l.do(effects)
}

func (l *pacedLab) voted() health.Verdict {
	id, _ := l.table.Find(l.key.Hash())
	return l.verdicts[id]
}

// pass lets time pass, with what is due.
func (l *pacedLab) pass(d time.Duration) {
	for end := l.now.Add(d); ; {
		next := end
		if at, ok := l.table.NextDeadline(); ok && at.Before(end) {
			if at.After(l.now) {
				next = at
			} else {
				next = l.now
			}
		}
		l.now = next
		l.do(l.table.Release(l.now))
		if at, ok := l.table.NextDeadline(); next.Equal(end) && (!ok || at.After(end)) {
			return
		}
	}
}

// recorded returns how many changes are recorded, and how many more they tell of.
func (l *pacedLab) recorded() (changes, more int) {
	l.t.Helper()
	last := unknown
	for i := range l.transitions {
		t := &l.transitions[i]
		if t.From != last {
			l.t.Fatalf("%v follows after %v", t, last)
		}
		if last = t.To; t.From != t.To {
			changes++
		}
		if _, text, ok := strings.Cut(t.Reason, "; "); ok {
			n := 0
			if _, err := fmt.Sscanf(text, "%d more change", &n); err != nil || n == 0 {
				l.t.Fatalf("reason %q: %v", t.Reason, err)
			}
			more += n
		} else if t.From == t.To {
			l.t.Fatalf("it tells of nothing: %v", t)
		}
	}
	return changes, more
}

// TestFlipsAreBounded: an endpoint flips 10 times a second for 10 minutes.
func TestFlipsAreBounded(t *testing.T) {
	l := newPacedLab(t)
	for range 6000 {
		l.turn(map[bool]health.Status{true: down, false: up}[l.voted().Status == up])
		l.pass(100 * time.Millisecond)
	}
	recorded, _ := l.recorded()
	if most := inARow + int(l.now.Sub(l.since)/oneMore); recorded > most || recorded < most/2 {
		t.Errorf("%d changes are recorded of %d, at most %d should be", recorded, l.changes, most)
	}
	if l.table.Paced() != 1 {
		t.Errorf("%d endpoints change too often", l.table.Paced())
	}
	l.pass(time.Minute)
	l.wantPublished(l.key, l.voted().Status)
	if recorded, more := l.recorded(); recorded+more != l.changes || more != l.leftOut {
		t.Errorf("%d changes are recorded with %d more, of %d; %d are said to be left out", recorded, more, l.changes, l.leftOut)
	}
	if l.table.Paced() != 0 {
		t.Error("it still changes too often after a minute")
	}
	if _, due := l.table.NextDeadline(); due {
		t.Error("something is due for ever")
	}
}

// TestNothingIsHeldForLong: what the votes say is published after oneMore at the latest,
// and all that is left out is counted.
func TestNothingIsHeldForLong(t *testing.T) {
	for seed := range uint64(300) {
		l, random := newPacedLab(t), rand.New(rand.NewPCG(seed, 14))
		id, _ := l.table.Find(l.key.Hash())
		differs := time.Duration(0)
		for range 1 + random.IntN(150) {
			l.turn([]health.Status{up, down, health.Timeout, health.Degraded}[random.IntN(4)])
			step := time.Duration(1+random.IntN(30)) * 100 * time.Millisecond
			if random.IntN(20) == 0 {
				step = time.Duration(1+random.IntN(90)) * time.Second
			}
			before := l.now
			l.pass(step)
			shown := l.table.Votes(id)
			if shown.Status != l.published(l.key) {
				t.Fatalf("shown is %v, published %v", shown, l.published(l.key))
			}
			if differs += l.now.Sub(before); shown.Status == l.voted().Status {
				differs = 0
			}
			if differs >= oneMore+100*time.Millisecond {
				t.Fatalf("%v is held for %v: %s", shown.Status, differs, shown.Reason)
			}
			if held := strings.Contains(shown.Reason, "it changes too often, so"); held != (differs > 0) {
				t.Fatalf("it differs for %v: %s", differs, shown.Reason)
			}
			if recorded, _ := l.recorded(); recorded > inARow+int(l.now.Sub(l.since)/oneMore) {
				t.Fatalf("%d are recorded in %v", recorded, l.now.Sub(l.since))
			}
		}
		l.pass(time.Minute)
		if recorded, more := l.recorded(); recorded+more != l.changes || more != l.leftOut {
			t.Fatalf("seed %d: %d are recorded with %d more, of %d; %d are said to be left out", seed, recorded, more, l.changes, l.leftOut)
		}
	}
}

// TestNoOutageWaits: neither restarts, nor a restart loop, nor a few outages at once.
func TestNoOutageWaits(t *testing.T) {
	never := func(t *testing.T, l *pacedLab) {
		t.Helper()
		if l.table.Paced() > 0 || l.leftOut > 0 || l.published(l.key) != l.voted().Status {
			t.Fatalf("it waits after %d changes in %v", l.changes, l.now.Sub(l.since))
		}
	}
	for seed := range uint64(200) {
		l, random := newPacedLab(t), rand.New(rand.NewPCG(seed, 14))
		l.turn(up)
		for range 20 { // within an hour
			l.pass(time.Duration(random.Int64N(int64(2 * time.Minute))))
			l.turn([]health.Status{down, health.Timeout}[random.IntN(2)])
			never(t, l)
			l.pass(time.Duration(random.Int64N(int64(time.Minute))))
			l.turn(up)
			never(t, l)
		}
	}
	t.Run("a restart every 10 s, for a day", func(t *testing.T) {
		l := newPacedLab(t)
		for range 8640 {
			l.turn(up)
			l.pass(9 * time.Second)
			l.turn(down)
			never(t, l)
			l.pass(time.Second)
		}
	})
	t.Run("five outages at once", func(t *testing.T) {
		l := newPacedLab(t)
		for range 5 {
			l.turn(up)
			l.turn(down)
		}
		never(t, l)
	})
}

// flip flips an endpoint too often, and leaves a change waiting.
func (l *pacedLab) flip() {
	for range inARow / 2 {
		l.turn(up)
		l.turn(down)
	}
	l.turn(up)
	l.turn(down)
	l.turn(up)
}

// TestAChangeThatWaitsIsShown with its reason, its end, and since when the published
// verdict is.
func TestAChangeThatWaitsIsShown(t *testing.T) {
	l := newPacedLab(t)
	l.flip()
	id, _ := l.table.Find(l.key.Hash())
	shown := l.table.Votes(id)
	if want := "it changes too often, so HEALTHY waits until 03:04:10 UTC: said; 2 more changes were left out, since it changes too often"; shown.Reason != want {
		t.Errorf("the reason is %q, want %q", shown.Reason, want)
	}
	if shown.Status != down || !shown.Since.Equal(l.since) {
		t.Errorf("shown is %v", shown)
	}
	l.pass(5 * time.Second)
	l.wantLast(down, up, "said; 2 more changes were left out, since it changes too often")
	if shown := l.table.Votes(id); shown.Status != up || shown.Reason != "said" || !shown.Since.Equal(l.now) {
		t.Errorf("then shown is %v", shown)
	}
}

// TestPacingUnderAnOverride: nothing is recorded of the votes there, so nothing is left
// out; what waits when the override ends is published in its time.
func TestPacingUnderAnOverride(t *testing.T) {
	l := newPacedLab(t)
	l.flip()
	if err := l.override(l.key, drained, 0); err != nil {
		t.Fatal(err)
	}
	count, left := len(l.transitions), l.leftOut
	for range 100 {
		l.turn(down)
		l.turn(up)
	}
	if len(l.transitions) != count || l.leftOut != left {
		t.Errorf("under the override, %v is recorded, %d left out", l.transitions[count:], l.leftOut-left)
	}
	if stored := l.stored.Voted[l.key.Hash()]; stored.Status != down {
		t.Errorf("the stored verdict is %v", stored)
	}
	_, effects, err := l.table.ClearOverrides(l.now, l.key, false, "ann")
	if err != nil {
		t.Fatal(err)
	}
	l.do(effects)
	l.wantPublished(l.key, down)
	l.pass(5 * time.Second)
	l.wantPublished(l.key, up)
	l.recorded()
}

// TestAnEndpointThatGoesTellsOfTheRest: what waits when an endpoint leaves its source is
// left out, and the history says so before it says that the endpoint is gone.
func TestAnEndpointThatGoesTellsOfTheRest(t *testing.T) {
	l := newPacedLab(t)
	l.flip()
	l.say(web("web", addresses[1]))
	if l.table.Paced() != 0 {
		t.Error("it is not forgotten")
	}
	if recorded, more := l.recorded(); recorded != l.changes-3+1 || more != 3 {
		t.Errorf("recorded are %d changes of %d and %d more: %v", recorded, l.changes, more, l.transitions)
	}
	l.wantLast(down, unknown, "in no source any more")
	l.pass(time.Minute)
}

// TestFewThatFlipDoNotWait: one endpoint flips 500 times at once, then once a second. Many
// that flip get no more together than one does.
func TestFewThatFlipDoNotWait(t *testing.T) {
	l := newPacedLab(t)
	l.table.Spare = 1000
	flip := func() { l.turn(map[bool]health.Status{true: down, false: up}[l.voted().Status == up]) }
	for range 1000 {
		flip()
	}
	for range 600 {
		flip()
		l.pass(time.Second)
	}
	if l.table.Paced() > 0 || l.leftOut > 0 {
		t.Errorf("%d changes were left out of %d", l.leftOut, l.changes)
	}

	const many, perSecond = 300, 10
	m := newLab(t)
	var all []string
	for i := range many {
		all = append(all, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
	}
	m.serve(web("web", all...))
	const seconds = 60
	for i := range seconds * perSecond {
		var changes []aggregate.Change
		for _, address := range all {
			id, _ := m.table.Find(keyOf("web", address).Hash())
			to := []health.Status{up, down}[i%2]
			changes = append(changes, aggregate.Change{Endpoint: id, From: m.verdicts[id].Status, To: to, FromSince: m.verdicts[id].Since, Reason: "said"})
			m.verdicts[id] = health.Verdict{Status: to, Since: m.now, Reason: "said"}
		}
		m.do(m.table.Decide(m.now, changes, nil))
		m.now = m.now.Add(time.Second / perSecond)
		m.do(m.table.Release(m.now))
	}
	most := many*(inARow+int(seconds*time.Second/oneMore)) + 1000 + 2*seconds
	if n := len(m.transitions); n > most || n < most/2 {
		t.Errorf("%d changes are recorded of %d, at most %d should be", n, many*seconds*perSecond, most)
	}
}
