package aggregate

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/health"
)

// parts are what most parts of an Aggregator share, with one endpoint, 0, of the
// default terms, and one checker, "a".
type parts struct {
	clock     clock
	deadlines deadlines
	settings  settings
	roster    roster
	zones     zones
	effects   Effects
	endpoint  *endpoint
	checker   uint32
}

func newParts() *parts {
	p := &parts{deadlines: newDeadlines(), settings: newSettings(Options{}), roster: newRoster(), zones: newZones()}
	p.clock.advance(time.Unix(0, 0))
	p.clock.maxPause = p.settings.longestStaleness()
	t := termsOf(&Endpoint{Timing: Timing{Interval: time.Second, ReportInterval: time.Second}})
	p.endpoint = p.roster.makeRoom(0)
	*p.endpoint = endpoint{verdictTime: never, flags: isKnown, policy: p.settings.use(&t)}
	p.checker = p.roster.number("a")
	p.roster.add(0, p.endpoint, p.checker)
	return p
}

func (p *parts) pass(d time.Duration) { p.clock.advance(p.clock.now.Add(d)) }

// TestPresence: a checker is heard, then awaited, then silent, unless it reports.
func TestPresence(t *testing.T) {
	p := newParts()
	here := presence{clock: &p.clock, deadlines: &p.deadlines, settings: &p.settings, roster: &p.roster, zones: &p.zones}
	state := func() hearingState { return p.roster.checker(p.checker).hearing.of(0).state }
	due := func() {
		if at, ok := p.deadlines.next(); ok && at <= p.clock.tick() {
			for range p.deadlines.pop() {
				here.due(p.checker, at)
			}
		}
	}
	if !here.hear(p.checker) || here.hear(p.checker) {
		t.Fatal("only the first report is one of a checker that was not heard")
	}
	for _, step := range []struct {
		after time.Duration
		want  hearingState
	}{
		{2500 * time.Millisecond, heard},
		{time.Millisecond, awaited},
		{4999 * time.Millisecond, awaited},
		{time.Millisecond, silent},
	} {
		p.pass(step.after)
		due()
		if got := state(); got != step.want {
			t.Fatalf("at %s its state is %d, want %d", p.clock.elapsed, got, step.want)
		}
	}
	if !here.hear(p.checker) || state() != heard {
		t.Error("it is not heard again")
	}
}

// TestDesertedZones: a zone is deserted while most of its checkers have lost their
// streams.
func TestDesertedZones(t *testing.T) {
	p := newParts()
	here := presence{clock: &p.clock, deadlines: &p.deadlines, settings: &p.settings, roster: &p.roster, zones: &p.zones}
	zone := p.zones.enter(health.Locality{Zone: "z"})
	var all []uint32
	for _, name := range []string{"a", "b", "c"} {
		c := p.roster.number(name)
		here.move(c, zone)
		here.connected(c)
		all = append(all, c)
	}
	for lost, want := range []bool{false, false, true, true} {
		if lost > 0 {
			here.lost(all[lost-1])
		}
		if here.findDeserted(); p.zones.deserted(zone) != want || here.pending() {
			t.Errorf("with %d of 3 lost it is deserted: %t", lost, !want)
		}
	}
	here.returned(all[0])
	here.returned(all[1])
	if here.findDeserted(); p.zones.deserted(zone) {
		t.Error("it is still deserted")
	}
}

// TestBudgets: time in which a verdict waits is spent, a pause counts as no more than
// the staleness, and what was spent stays spent until the budget is filled again.
func TestBudgets(t *testing.T) {
	p := newParts()
	b := budgets{&p.clock, &p.deadlines, &p.settings, &p.roster}
	whole := fromMilliseconds(b.total(p.endpoint))
	wait := func(d time.Duration) {
		b.spend(0, p.endpoint)
		for ; d > 0; d -= time.Second {
			p.pass(min(d, time.Second))
		}
		b.check(p.endpoint)
		b.stop(p.endpoint)
	}
	wait(whole - 2*time.Second)
	p.pass(time.Hour) // nothing waits
	if wait(time.Second); p.endpoint.has(budgetSpent) || b.untouched(p.endpoint) {
		t.Fatalf("a second is left, but its flags are %b", p.endpoint.flags)
	}
	b.spend(0, p.endpoint)
	p.pass(time.Hour)
	at, _ := p.deadlines.next()
	if b.due(0, at); !p.endpoint.has(budgetSpent) || p.roster.markedCount() != 1 {
		t.Fatalf("nothing is left, but its flags are %b", p.endpoint.flags)
	}
	if b.refill(p.endpoint); !b.untouched(p.endpoint) {
		t.Fatal("it is not whole again")
	}
	b.spend(0, p.endpoint)
	p.pass(time.Hour) // as long as the staleness
	if b.check(p.endpoint); p.endpoint.has(budgetSpent) {
		t.Error("a pause spends it all")
	}
}

// TestRecords: whatever a seat contributes, one after the other, the records are the
// sum of the present contributions.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newParts()
		r := records{settings: &p.settings, roster: &p.roster, zones: &p.zones, paths: map[path]*record{}, cuts: map[path]bool{}, blamed: map[sender]int{}}
		p.roster.checker(p.checker).zone = p.zones.enter(health.Locality{Zone: "from"})
		p.endpoint.zone = p.zones.enter(health.Locality{Zone: "to"})
		any := rapid.SampledFrom([]contribution{
			0, voting, voting | sayingDown, voting | sayingDown | contradictedByMost | contradictedOnPath,
			voting | sayingDown | contradictedOnPath, voting | sayingDown | contradictedByMost | contradictedOnPath | excused,
		})
		s := &p.roster.seatsOf(p.endpoint)[0]
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			r.set(p.endpoint, s, any.Draw(t, "adds"))
		}
		count := func(adds, contradicted contribution) record {
			var want record
			if adds&voting != 0 {
				want.votes = 1
			}
			if adds&sayingDown != 0 {
				want.downs = 1
			}
			if adds&contradicted != 0 {
				want.contradicted = 1
			}
			want.queued = true
			return want
		}
		if got, want := *r.ofChecker(checkerClass{p.checker, 0}), count(s.adds.toChecker(), contradictedByMost); got != want {
			t.Fatalf("the checker's record is %+v, want %+v", got, want)
		}
		for _, from := range []uint32{p.roster.checker(p.checker).zone, elsewhere} {
			if got, want := *r.ofPath(path{from, p.endpoint.zone, 0}), count(s.adds, contradictedOnPath); got != want {
				t.Fatalf("the record of the path from %d is %+v, want %+v", from, got, want)
			}
			if got, want := r.blamed[sender{path{from, p.endpoint.zone, 0}, p.checker}], r.ofPath(path{from, p.endpoint.zone, 0}).contradicted; got != want {
				t.Fatalf("%d votes over the path from %d are contradicted, and of its only sender %d", want, from, got)
			}
		}
		if n := len(r.takeCheckers()); n != 1 {
			t.Fatalf("the checker is listed %d times", n)
		}
	})
}

// TestZoneViews: a view that differs from the verdict is reported once it has lasted,
// and then that it is over.
func TestZoneViews(t *testing.T) {
	p := newParts()
	v := zoneViews{&p.clock, &p.deadlines, &p.zones, &p.effects, map[health.EndpointID][]differingView{}}
	sees := zoneTally{zone: p.zones.enter(health.Locality{Zone: "z"})}
	sees.down, sees.votes[health.Timeout] = 1, 1
	look := func(verdict health.Status) []ZoneView {
		v.update(7, verdict, []zoneTally{sees}, time.Second, 5*time.Second)
		effects := p.effects.drain()
		return effects.ZoneViews
	}
	if got := look(health.Healthy); len(got) != 0 {
		t.Errorf("reported at once: %+v", got)
	}
	p.pass(time.Second)
	if got := look(health.Healthy); len(got) != 1 || got[0].Over || got[0].Status != health.Timeout || got[0].Zone.Zone != "z" {
		t.Errorf("a view that lasted is reported as %+v", got)
	}
	if got := look(health.Healthy); len(got) != 0 {
		t.Errorf("reported again: %+v", got)
	}
	for i := range 20 { // the names of a down alternate
		sees.votes[health.Timeout], sees.votes[health.Unhealthy] = uint16(i%2), uint16(1-i%2)
		if got := look(health.Healthy); len(got) != 0 {
			t.Errorf("the other name is reported: %+v", got)
		}
		p.pass(time.Second)
	}
	sees.votes[health.Timeout], sees.votes[health.Unhealthy] = 0, 1
	if got := look(health.Healthy); len(got) != 0 {
		t.Errorf("another name is reported at once: %+v", got)
	}
	p.pass(5 * time.Second)
	if got := look(health.Healthy); len(got) != 1 || got[0].Over || got[0].Status != health.Unhealthy {
		t.Errorf("a name that lasted is reported as %+v", got)
	}
	if got := look(health.Unhealthy); len(got) != 1 || !got[0].Over {
		t.Errorf("the end of a view is reported as %+v", got)
	}
}
