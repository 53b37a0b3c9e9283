package aggregate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// wholeBudget is the wait budget of the usual endpoint.
const wholeBudget = 5*time.Second + 4500*time.Millisecond + 2500*time.Millisecond

// round is how long a checker takes to probe and report.
const round = time.Second

// drill plays checkers that restart and hosts that are re-created. All check endpoint
// 0; the other endpoints only influence doubt.
type drill struct {
	aggregator *aggregate.Aggregator
	rule       aggregate.Rule
	now        time.Duration
	checkers   []*drilled
	down       bool // the endpoint, in truth
	recreate   []time.Duration
	others     int
	flicker    time.Duration
	opposed    time.Duration // since when the votes that count oppose the verdict; 0: they do not
	longest    time.Duration
}

// drilled is a checker that is away and back in turn, or always there.
type drilled struct {
	name       string
	zone       string
	away, back time.Duration // away 0: it never leaves
	here       bool
	turn       time.Duration // when it leaves or comes next
	born       time.Duration // since when its host of the endpoint exists
	next       time.Duration // its next report
	sees       func(d *drill) health.Status
}

const drillStep = 100 * time.Millisecond

func newDrill(rule aggregate.Rule, options aggregate.Options, others int, checkers ...*drilled) *drill {
	d := &drill{aggregator: aggregate.New(options), rule: rule, checkers: checkers, others: others}
	for id := range health.EndpointID(others + 1) {
		d.aggregator.Set(aggregate.Endpoint{ID: id, Timing: usual, Rule: rule, Zone: health.Locality{Zone: "z"}, Cluster: "k"}, health.Verdict{Status: health.Healthy, Since: epoch})
		for _, c := range checkers {
			d.aggregator.Assign(epoch, id, c.name)
		}
	}
	for i, c := range checkers {
		c.next = time.Duration(i) * drillStep
		d.begin(c)
	}
	return d
}

func (d *drill) wall() time.Time { return epoch.Add(d.now) }

func (d *drill) begin(c *drilled) {
	c.here, c.turn, c.born = true, d.now+c.back, d.now
	c.next = max(c.next, d.now+3*drillStep)
	d.aggregator.Connected(d.wall(), health.Checker{ID: c.name, Locality: health.Locality{Zone: c.zone}})
}

// runTo lets time pass.
func (d *drill) runTo(end time.Duration) {
	for ; d.now < end; d.now += drillStep {
		d.step()
	}
}

func (d *drill) step() {
	for _, c := range d.checkers {
		switch {
		case c.away == 0 || d.now < c.turn:
		case c.here:
			c.here, c.turn = false, d.now+c.away
			d.aggregator.Lost(c.name)
		default:
			d.begin(c)
		}
	}
	if len(d.recreate) > 0 && d.now >= d.recreate[0] {
		d.recreate = d.recreate[1:]
		for _, c := range d.checkers {
			c.born = d.now
			d.aggregator.Assign(d.wall(), 0, c.name)
		}
	}
	d.aggregator.Tick(d.wall())
	d.watch()
	for _, c := range d.checkers {
		if c.here && d.now >= c.next {
			c.next = d.now + round
			d.aggregator.Report(d.wall(), c.name, d.report(c))
			d.watch()
		}
	}
}

// report is what a checker says: UNHEALTHY until it has probed.
func (d *drill) report(c *drilled) []health.Vote {
	truth := health.Healthy
	switch {
	case d.now < c.born+usual.Timeout:
		truth = health.Unhealthy
	case d.down && c.sees != nil:
		truth = c.sees(d)
	case d.down:
		truth = health.Unhealthy
	}
	votes := []health.Vote{{Status: truth}}
	for id := range health.EndpointID(d.others) {
		says := health.Healthy
		if d.flicker > 0 && c.zone != "z" && d.now/d.flicker%2 == 1 {
			says = health.Timeout
		}
		votes = append(votes, health.Vote{Endpoint: id + 1, Status: says})
	}
	return votes
}

// watch measures for how long the votes that count oppose the verdict.
func (d *drill) watch() {
	v := d.aggregator.Verdict(0)
	var votes []oracleVote
	for _, o := range v.Observations {
		i := slices.IndexFunc(d.checkers, func(c *drilled) bool { return c.name == o.Checker })
		switch {
		case o.Disbelieved != "":
		case o.Status.Up():
			votes = append(votes, oracleVote{zone: d.checkers[i].zone, side: "up"})
		case o.Status.Down():
			votes = append(votes, oracleVote{zone: d.checkers[i].zone, side: "down", run: 4})
		}
	}
	side := "neither"
	if len(votes) > 0 {
		side = verdict(d.rule, votes)
	}
	if side == "neither" || (side == "down") == v.Status.Down() {
		d.opposed = 0
		return
	}
	if d.opposed == 0 {
		d.opposed = d.now
	}
	d.longest = max(d.longest, d.now-d.opposed)
}

// fall takes the endpoint down, and returns how long its verdict takes to follow.
func (d *drill) fall(t testing.TB) time.Duration {
	t.Helper()
	began := d.now
	for d.down = true; d.now < began+time.Hour; d.runTo(d.now + drillStep) {
		if d.aggregator.Verdict(0).Status.Down() {
			return d.now - began
		}
	}
	t.Fatalf("after %s of outage: %s", d.now-began, d.aggregator.Verdict(0).Reason)
	return 0
}

func steady(names ...string) []*drilled {
	var list []*drilled
	for _, name := range names {
		list = append(list, &drilled{name: name, zone: name})
	}
	return list
}

func looping(names ...string) []*drilled {
	list := steady(names...)
	for i, c := range list {
		c.away, c.back = time.Second, 3*time.Second+time.Duration(i)*drillStep
	}
	return list
}

// TestRestartLoopsHideNoOutage: checkers that restart before they have probed are not
// awaited over and over.
func TestRestartLoopsHideNoOutage(t *testing.T) {
	for name, checkers := range map[string][]*drilled{
		"one of two":     slices.Concat(steady("a"), looping("b")),
		"two of three":   slices.Concat(steady("a"), looping("b", "c")),
		"two beside two": slices.Concat(steady("a", "b"), looping("c", "d")),
		"all":            looping("a", "b", "c"),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrill(aggregate.Rule{}, aggregate.Options{}, 0, checkers...)
			d.runTo(time.Minute)
			took := d.fall(t)
			t.Logf("down after %s, a majority held for %s", took, d.longest)
			if most := wholeBudget + 3*round; name != "all" && took > most || took > most+5*time.Second {
				t.Errorf("down after %s: %s", took, d.aggregator.Verdict(0).Reason)
			}
		})
	}
}

// TestChangingChecksHideNoOutage: hosts that are re-created before their checkers have
// confirmed that they are down are not awaited over and over.
func TestChangingChecksHideNoOutage(t *testing.T) {
	for _, life := range []time.Duration{3 * time.Second, 4 * time.Second, 6 * time.Second, 12 * time.Second} {
		t.Run(life.String(), func(t *testing.T) {
			d := newDrill(aggregate.Rule{}, aggregate.Options{}, 0, steady("a", "b", "c")...)
			for at := 20 * time.Second; at < time.Hour; at += life {
				d.recreate = append(d.recreate, at)
			}
			d.runTo(20*time.Second + 10*life)
			if v := d.aggregator.Verdict(0); v.Status != health.Healthy {
				t.Fatalf("%s while it is up: %s", v.Status, v.Reason)
			}
			took := d.fall(t)
			t.Logf("down after %s", took)
			if took > wholeBudget+2*life {
				t.Errorf("down after %s: %s", took, d.aggregator.Verdict(0).Reason)
			}
		})
	}
}

// TestFlickeringDoubtHidesNoOutage: where doubt of the checkers that get no answer
// comes and goes, their downs do not wait anew each time.
func TestFlickeringDoubtHidesNoOutage(t *testing.T) {
	inside := func(*drill) health.Status { return health.Healthy }
	outside := func(*drill) health.Status { return health.Timeout }
	for _, flicker := range []time.Duration{time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second} {
		t.Run(flicker.String(), func(t *testing.T) {
			d := newDrill(aggregate.Rule{}, aggregate.Options{Doubt: testDoubt}, 8,
				&drilled{name: "a", zone: "z", sees: inside}, &drilled{name: "b", zone: "b", sees: outside}, &drilled{name: "c", zone: "c", sees: outside})
			d.runTo(time.Minute)
			d.flicker = flicker
			took := d.fall(t)
			t.Logf("down after %s", took)
		})
	}
}

// TestFlapsAreNotWaitedForLonger: an endpoint that went down only once is not damped,
// so it comes back as soon as one that never did.
func TestFlapsAreNotWaitedForLonger(t *testing.T) {
	d := newDrill(aggregate.Rule{Damping: aggregate.DefaultDamping}, aggregate.Options{}, 3, slices.Concat(steady("a"), looping("b"))...)
	d.runTo(20 * time.Second)
	d.checkers[1].back = 500 * time.Millisecond
	d.fall(t)
	d.runTo(d.now + 10*time.Second)
	d.down, d.longest = false, 0
	d.runTo(d.now + time.Minute)
	if v := d.aggregator.Verdict(0); v.Status != health.Healthy || d.longest > wholeBudget {
		t.Errorf("a majority of up was held for %s: %s", d.longest, v.Reason)
	}
}

// TestPausesUseBudgetsUp: where this process stood still until the budget of an
// endpoint was spent, the endpoint waits no longer.
func TestPausesUseBudgetsUp(t *testing.T) {
	for _, pause := range []time.Duration{5 * time.Second, wholeBudget, time.Minute, time.Hour} {
		t.Run(pause.String(), func(t *testing.T) {
			d := newDrill(aggregate.Rule{}, aggregate.Options{}, 0, slices.Concat(steady("a"), looping("b"))...)
			d.runTo(20500 * time.Millisecond)
			d.down = true
			d.runTo(21500 * time.Millisecond)
			d.now += pause
			if took := d.fall(t); took > wholeBudget+3*round {
				t.Errorf("down %s after a standstill", took)
			}
		})
	}
}

// TestNoMajorityIsHeldForLong: whichever checkers and hosts come and go, and however
// doubt does, the majority of the votes that count becomes the verdict in a bounded
// time.
func TestNoMajorityIsHeldForLong(t *testing.T) {
	longest := time.Duration(0)
	rapid.Check(t, func(t *rapid.T) {
		ms := func(label string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least/100, most/100).Draw(t, label)) * drillStep
		}
		says := rapid.SampledFrom([]health.Status{health.Unhealthy, health.Unhealthy, health.Timeout, health.Healthy})
		var checkers []*drilled
		for i := range rapid.IntRange(1, 5).Draw(t, "checkers") {
			c := &drilled{name: fmt.Sprint("c", i), zone: rapid.SampledFrom([]string{"z", "a", "b", ""}).Draw(t, "zone")}
			if rapid.Bool().Draw(t, "loops") {
				c.away, c.back = ms("away", 100, 9000), ms("back", 100, 9000)
			}
			say := says.Draw(t, "says")
			c.sees = func(*drill) health.Status { return say }
			checkers = append(checkers, c)
		}
		rule := aggregate.Rule{
			Kind:    aggregate.Kind(rapid.IntRange(0, int(aggregate.ZoneMajority)).Draw(t, "kind")),
			AtLeast: 2, Share: 0.18,
		}
		d := newDrill(rule, aggregate.Options{Doubt: testDoubt}, rapid.IntRange(0, 4).Draw(t, "others"), checkers...)
		d.flicker = ms("flicker", 0, 6000)
		if rapid.Bool().Draw(t, "changes") {
			for at := ms("first", 0, 9000); at < 3*time.Minute; at += ms("life", 1000, 12000) {
				d.recreate = append(d.recreate, at)
			}
		}
		d.runTo(ms("healthy", 0, 20000))
		d.down = true
		d.runTo(d.now + 2*time.Minute)
		d.down = false
		d.runTo(d.now + time.Minute)
		longest = max(longest, d.longest)
		if d.longest > wholeBudget {
			t.Fatalf("a majority was held for %s", d.longest)
		}
	})
	t.Logf("the longest that a majority was held: %s of %s", longest, wholeBudget)
}
