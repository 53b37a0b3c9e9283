package aggregate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// twins are an aggregator and its oracle, which get the same calls.
type twins struct {
	t          *rapid.T
	aggregator *aggregate.Aggregator
	oracle     *oracle
	now        time.Duration
	status     map[health.EndpointID]health.Status // according to the changes
	blind      map[string]bool                     // according to the effects
	opposed    map[health.EndpointID]opposition
}

const (
	endpoints = 5
	pool      = 7 // checkers
)

var (
	anyEndpoint = rapid.Map(rapid.IntRange(0, endpoints-1), func(i int) health.EndpointID { return health.EndpointID(i) })
	anyChecker  = rapid.Map(rapid.IntRange(0, pool-1), func(i int) string { return fmt.Sprint("c", i) })
	anyStatus   = rapid.SampledFrom([]health.Status{
		health.Healthy, health.Healthy, health.Unhealthy, health.Unhealthy, health.Timeout, health.Degraded, health.Draining, health.Unknown,
	})
	anyTiming = rapid.Custom(func(t *rapid.T) aggregate.Timing {
		ms := func(label string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Millisecond
		}
		return aggregate.Timing{
			Interval: ms("interval", 2000), Timeout: ms("timeout", 900), InitialJitter: ms("jitter", 900),
			ReportInterval: ms("report", 1500), UnhealthyThreshold: rapid.Uint32Range(0, 4).Draw(t, "threshold"),
			HealthyThreshold: rapid.Uint32Range(0, 3).Draw(t, "healthy threshold"),
		}
	})
)

var anyRule = rapid.Custom(func(t *rapid.T) aggregate.Rule {
	return aggregate.Rule{
		Kind:       aggregate.Kind(rapid.IntRange(0, int(aggregate.Score)).Draw(t, "kind")),
		AtLeast:    rapid.IntRange(1, 4).Draw(t, "at least"),
		Share:      rapid.SampledFrom([]float64{0, 0.18, 0.5, 0.9}).Draw(t, "share"),
		Unobserved: aggregate.Unobserved(rapid.IntRange(0, int(aggregate.TurnUnhealthy)).Draw(t, "unobserved")),

		DegradedWhen: rapid.SampledFrom([]aggregate.Codes{{}, codes(503), codes(200, 503)}).Draw(t, "degraded when"),
		Passing:      rapid.SampledFrom([]aggregate.Codes{{}, codes(200)}).Draw(t, "passing"),
		WarmUp:       rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond}).Draw(t, "warm-up"),
	}
})

// freshCodes are the abilities of a checker whose status codes are those of its latest
// probes.
var freshCodes = health.Abilities{health.FreshCodes: {}}

// clusterOf is the cluster that an endpoint is in.
func clusterOf(id health.EndpointID) string { return fmt.Sprint("k", id%2) }

func codes(list ...int) aggregate.Codes {
	var c aggregate.Codes
	for _, code := range list {
		c.Add(code, code)
	}
	return c
}

func (w *twins) wall() time.Time { return epoch.Add(w.now) }

// compare compares the changes of both, and everything that they hold.
func (w *twins) compare(got aggregate.Effects, want map[health.EndpointID]health.Status) {
	changed := map[health.EndpointID]health.Status{}
	for _, c := range got.Changes {
		changed[c.Endpoint] = c.To
		if c.From != w.status[c.Endpoint] || c.From == c.To {
			w.t.Fatalf("%d went from %s to %s, but was %s", c.Endpoint, c.From, c.To, w.status[c.Endpoint])
		}
		w.status[c.Endpoint] = c.To
		w.checkCarried(c)
	}
	if diff := cmp.Diff(want, changed); diff != "" {
		w.t.Fatalf("at %s other changes than the oracle's (-oracle +got):\n%s", w.now, diff)
	}
	maps.DeleteFunc(w.opposed, func(id health.EndpointID, _ opposition) bool { return w.oracle.endpoints[id] == nil })
	unobserved, voters := 0, aggregate.Voters{}
	for id, e := range w.oracle.endpoints {
		voters[min(w.compareEndpoint(id, e), aggregate.ManyVoters)]++
		w.checkWait(id, e)
		if e.unobserved {
			unobserved++
		}
	}
	w.compareBlindness(got.Blindness)
	w.comparePaths()
	if got := w.aggregator.Unobserved(); got != unobserved {
		w.t.Fatalf("at %s %d endpoints are unobserved, the oracle says %d", w.now, got, unobserved)
	}
	if got := w.aggregator.Voters(); got != voters && w.settled() {
		w.t.Fatalf("at %s the endpoints by votes that count are %v, the oracle says %v", w.now, got, voters)
	}
	if want, ok := w.oracle.next(); ok {
		if at, ok := w.aggregator.NextDeadline(); !ok || at.Sub(epoch) > want {
			w.t.Fatalf("at %s the next deadline is %v (%v), but something is due at %s", w.now, at.Sub(epoch), ok, want)
		}
	}
}

// settled reports whether nothing waits for the next step.
func (w *twins) settled() bool {
	at, some := w.aggregator.NextDeadline()
	return !some || at.After(w.wall())
}

// compareBlindness compares who is blind with the oracle and with the effects.
func (w *twins) compareBlindness(changes []aggregate.BlindnessChange) {
	for _, b := range changes {
		if w.blind[b.Checker] == b.Blind || b.Reason == "" {
			w.t.Fatalf("at %s it is reported again, or without a reason: %+v", w.now, b)
		}
		w.blind[b.Checker] = b.Blind
	}
	for i := range pool {
		name := fmt.Sprint("c", i)
		c := w.oracle.checkers[name]
		want := c != nil && c.blind()
		if got := w.aggregator.BlindReason(name) != ""; got != want || w.blind[name] != want {
			w.t.Fatalf("at %s %s is blind: %v, was reported %v, the oracle says %v", w.now, name, got, w.blind[name], want)
		}
	}
}

// comparePaths compares what the votes over each path say, and which paths are cut.
func (w *twins) comparePaths() {
	if !w.settled() {
		return
	}
	want, got := map[aggregate.Path]bool{}, map[aggregate.Path]bool{}
	_, records := w.oracle.records()
	for key, r := range records {
		if key[0] == "elsewhere" || r.votes == 0 {
			continue
		}
		p := aggregate.Path{From: key[0], To: key[1], Votes: r.votes, Downs: r.downs, Contradicted: r.contradicted}
		island := w.oracle.paths[[2]string{"elsewhere", key[1]}]
		want[p] = w.oracle.paths[key].doubted || island != nil && island.doubted
	}
	for _, p := range w.aggregator.Paths() {
		cut := p.CutReason != ""
		p.CutReason = ""
		got[p] = cut
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("at %s other paths, or other ones are cut, than the oracle says (-oracle +got):\n%s", w.now, diff)
	}
}

// compareEndpoint compares an endpoint, and returns how many votes on it count.
func (w *twins) compareEndpoint(id health.EndpointID, e *oracleEndpoint) (voters int) {
	v := w.aggregator.Verdict(id)
	if v.Status != e.status {
		w.t.Fatalf("at %s endpoint %d is %s, the oracle says %s", w.now, id, v.Status, e.status)
	}
	if v.Reason == "" {
		w.t.Fatalf("endpoint %d has no reason", id)
	}
	got, want := map[string]bool{}, map[string]bool{}
	for _, o := range v.Observations {
		got[o.Checker+" "+o.Status.String()] = o.Disbelieved == ""
	}
	for name, p := range e.pairs {
		if p.voted {
			worth := w.oracle.worth(e, name, p)
			counts := worth == "up" || worth == "down"
			if want[name+" "+p.status.String()] = counts; counts {
				voters++
			}
		}
	}
	if _, held := w.aggregator.Held(id); w.settled() && held != (voters == 0 && !v.Since.IsZero() && v.Status != health.Unknown) {
		w.t.Fatalf("at %s endpoint %d is held: %t, with %d votes that count and %s since %v", w.now, id, held, voters, v.Status, v.Since)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("at %s other votes of %d are believed than the oracle's (-oracle +got):\n%s", w.now, id, diff)
	}
	return voters
}

// checkCarried checks that the votes of a change lead to it by the rule.
func (w *twins) checkCarried(c aggregate.Change) {
	e := w.oracle.endpoints[c.Endpoint]
	votes := w.believed(e, c.Observations)
	if len(votes) == 0 {
		if e.rule.Unobserved == aggregate.Hold {
			w.t.Fatalf("at %s endpoint %d became %s without votes: %s", w.now, c.Endpoint, c.To, c.Reason)
		}
		return
	}
	if got := verdict(e.rule, votes); got != "up" && got != "down" || (got == "up") != c.To.Up() || (got == "down") != c.To.Down() {
		w.t.Fatalf("at %s endpoint %d became %s by %+v with votes that come to %s: %s", w.now, c.Endpoint, c.To, e.rule, got, c.Reason)
	}
}

// believed returns the votes that count, as they are shown.
func (w *twins) believed(e *oracleEndpoint, all []health.Observation) []oracleVote {
	var votes []oracleVote
	for _, o := range all {
		switch {
		case o.Disbelieved != "":
		case o.Status.Up():
			votes = append(votes, oracleVote{w.oracle.checkers[o.Checker].zone, "up", 0})
		case o.Status.Down():
			votes = append(votes, oracleVote{w.oracle.checkers[o.Checker].zone, "down", w.oracle.run(e, o.Checker)})
		}
	}
	return votes
}

// opposition says since when the votes that count oppose the verdict, and for how
// long they may.
type opposition struct {
	side         string
	since, bound time.Duration
}

// checkWait checks that no majority of the votes that count opposes the verdict for
// longer than the endpoint's wait budget.
func (w *twins) checkWait(id health.EndpointID, e *oracleEndpoint) {
	v := w.aggregator.Verdict(id)
	side := "neither"
	if votes := w.believed(e, v.Observations); len(votes) > 0 {
		side = verdict(e.rule, votes)
	}
	if side == "neither" || side == sideOf(v.Status) {
		delete(w.opposed, id)
		return
	}
	s := opposition{side, w.oracle.watched, w.oracle.budget(e)}
	if before, ok := w.opposed[id]; ok && before.side == side {
		s = opposition{side, before.since, max(s.bound, before.bound)} // a wait under other settings ends as it was to
	}
	if w.opposed[id] = s; w.oracle.watched-s.since > s.bound {
		w.t.Fatalf("at %s votes of %s oppose the verdict on %d since %s: %s", w.now, side, id, s.since, v.Reason)
	}
}

func (w *twins) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"time": func(t *rapid.T) {
			w.now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
		},
		"tick": func(*rapid.T) { w.compare(w.aggregator.Tick(w.wall()), w.oracle.tick(w.now)) },
		"set": func(t *rapid.T) {
			id, timing := anyEndpoint.Draw(t, "endpoint"), anyTiming.Draw(t, "timing")
			rule := anyRule.Draw(t, "rule")
			last := health.Verdict{Status: rapid.SampledFrom([]health.Status{health.Unknown, health.Healthy, health.Unhealthy, health.Timeout}).Draw(t, "last")}
			if last.Status != health.Unknown || rapid.Bool().Draw(t, "judged") {
				last.Since = epoch
			}
			w.compare(w.aggregator.Tick(w.wall()), w.oracle.tick(w.now)) // Set goes by the latest time that was given
			if w.oracle.endpoints[id] == nil {
				w.status[id] = last.Status
			}
			zone := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")
			w.aggregator.Set(aggregate.Endpoint{ID: id, Timing: timing, Rule: rule, Zone: health.Locality{Zone: zone}, Cluster: clusterOf(id)}, last)
			w.oracle.set(w.now, id, timing, rule, zone, last)
		},
		"remove": func(t *rapid.T) {
			if id := anyEndpoint.Draw(t, "endpoint"); rapid.IntRange(0, 4).Draw(t, "really") == 0 {
				w.aggregator.Remove(id)
				w.oracle.remove(id)
			}
		},
		"assign": func(t *rapid.T) {
			id, checker := anyEndpoint.Draw(t, "endpoint"), anyChecker.Draw(t, "checker")
			w.aggregator.Assign(w.wall(), id, checker)
			w.oracle.assign(w.now, id, checker)
		},
		"unassign": func(t *rapid.T) {
			id, checker := anyEndpoint.Draw(t, "endpoint"), anyChecker.Draw(t, "checker")
			w.aggregator.Unassign(w.wall(), id, checker)
			w.oracle.unassign(w.now, id, checker)
		},
		"connected": func(t *rapid.T) {
			checker := anyChecker.Draw(t, "checker")
			zone := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")
			k := health.Checker{ID: checker, Locality: health.Locality{Zone: zone}}
			if rapid.IntRange(0, 3).Draw(t, "release") > 0 {
				k.Abilities = freshCodes
			}
			w.aggregator.Connected(w.wall(), k)
			w.oracle.connected(w.now, k)
		},
		"lost": func(t *rapid.T) {
			checker := anyChecker.Draw(t, "checker")
			w.aggregator.Lost(checker)
			w.oracle.lost(checker)
		},
		"setTrust": func(t *rapid.T) {
			checker, word := anyChecker.Draw(t, "checker"), aggregate.OperatorTrust(rapid.IntRange(0, int(aggregate.Trusted)).Draw(t, "word"))
			w.aggregator.SetTrust(checker, word, "because")
			w.oracle.setTrust(checker, word)
		},
		"distrust others": w.distrustOthers,
		"miss outages":    w.missOutages,
		"divide":          w.divide,
		"report":          w.report,
		"report2":         w.report,
		"hear all": func(*rapid.T) {
			w.hearAll()
		},
		"rounds": func(t *rapid.T) {
			for range rapid.IntRange(1, 4).Draw(t, "rounds") {
				w.now += time.Second
				w.hearAll()
			}
		},
	}
}

func (w *twins) hearAll() {
	for i := range pool {
		name := fmt.Sprint("c", i)
		w.compare(w.aggregator.Report(w.wall(), name, nil), w.oracle.report(w.now, name, nil))
	}
}

func (w *twins) report(t *rapid.T) {
	checker := anyChecker.Draw(t, "checker")
	var votes []health.Vote
	for id := range health.EndpointID(endpoints) {
		if rapid.Bool().Draw(t, "votes") {
			code := rapid.SampledFrom([]uint16{0, 0, 200, 503}).Draw(t, "code")
			votes = append(votes, health.Vote{Endpoint: id, Status: anyStatus.Draw(t, "status"), HTTPStatusCode: code})
		}
	}
	w.compare(w.aggregator.Report(w.wall(), checker, votes), w.oracle.report(w.now, checker, votes))
}

// distrustOthers lets all checkers but one say down of an endpoint, and distrusts
// them: whether it comes back depends on how firmly the last says up.
func (w *twins) distrustOthers(t *rapid.T) {
	id, code := anyEndpoint.Draw(t, "endpoint"), rapid.SampledFrom([]uint16{0, 200, 404, 503}).Draw(t, "code")
	if w.oracle.endpoints[id] == nil {
		return
	}
	vote := func(checker string, status health.Status, code uint16) {
		votes := []health.Vote{{Endpoint: id, Status: status, HTTPStatusCode: code}}
		w.compare(w.aggregator.Report(w.wall(), checker, votes), w.oracle.report(w.now, checker, votes))
	}
	names := slices.Sorted(maps.Keys(w.oracle.endpoints[id].pairs))
	for _, name := range names {
		vote(name, health.Healthy, 200)
	}
	for i, name := range names {
		if i == 0 {
			vote(name, health.Healthy, code)
		} else {
			vote(name, health.Unhealthy, 500)
		}
	}
	for _, name := range names[min(1, len(names)):] {
		w.aggregator.SetTrust(name, aggregate.Distrusted, "because")
		w.oracle.setTrust(name, aggregate.Distrusted)
	}
	w.compare(w.aggregator.Tick(w.wall()), w.oracle.tick(w.now))
}

// missOutages lets a checker say up of what all others say is down, except for some
// that it sees, too, for a while in which all are heard.
func (w *twins) missOutages(t *rapid.T) {
	who, sees := anyChecker.Draw(t, "who"), health.EndpointID(rapid.IntRange(0, 2*endpoints).Draw(t, "sees"))
	var chosen []health.EndpointID
	for id := range health.EndpointID(endpoints) {
		if e := w.oracle.endpoints[id]; e != nil && e.pairs[who] != nil && rapid.IntRange(0, 3).Draw(t, "down") > 0 {
			chosen = append(chosen, id)
		}
	}
	for _, others := range []health.Status{health.Healthy, health.Unhealthy} { // so that nobody warms up
		for i := range pool {
			name := fmt.Sprint("c", i)
			var votes []health.Vote
			for _, id := range chosen {
				votes = append(votes, health.Vote{Endpoint: id, Status: others, HTTPStatusCode: 500})
				if name == who && id != sees {
					votes[len(votes)-1].Status = health.Healthy
				}
			}
			w.compare(w.aggregator.Report(w.wall(), name, votes), w.oracle.report(w.now, name, votes))
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "times") {
		w.now += 2 * time.Second
		w.hearAll()
	}
}

func newTwins(t *rapid.T) *twins { return newTwinsThat(t, testDoubt, "a", "b") }

func newTwinsThat(t *rapid.T, doubt aggregate.Doubt, zones ...string) *twins {
	w := &twins{t: t, aggregator: aggregate.New(aggregate.Options{Doubt: doubt}), oracle: newOracle(doubt), status: map[health.EndpointID]health.Status{}, blind: map[string]bool{}, opposed: map[health.EndpointID]opposition{}}
	w.aggregator.Tick(epoch)
	for i := range pool {
		name, zone := fmt.Sprint("c", i), zones[i%2]
		k := health.Checker{ID: name, Locality: health.Locality{Zone: zone}, Abilities: freshCodes}
		w.aggregator.Connected(epoch, k)
		w.oracle.connected(0, k)
	}
	for id := range health.EndpointID(endpoints) {
		zone := zones[int(id)/3]
		w.aggregator.Set(aggregate.Endpoint{ID: id, Timing: usual, Zone: health.Locality{Zone: zone}, Cluster: clusterOf(id)}, health.Verdict{})
		w.oracle.set(0, id, usual, aggregate.Rule{}, zone, health.Verdict{})
		for i := range 3 {
			name := fmt.Sprint("c", (int(id)+i)%pool)
			w.aggregator.Assign(epoch, id, name)
			w.oracle.assign(0, id, name)
		}
	}
	return w
}

// rule puts all endpoints under a rule.
func (w *twins) rule(r aggregate.Rule) {
	for id := range health.EndpointID(endpoints) {
		zone := w.oracle.endpoints[id].zone
		w.aggregator.Set(aggregate.Endpoint{ID: id, Timing: usual, Rule: r, Zone: health.Locality{Zone: zone}, Cluster: clusterOf(id)}, health.Verdict{})
		w.oracle.set(w.now, id, usual, r, zone, health.Verdict{})
	}
}

// TestSameAsOracle: the aggregator, which updates its state step by step, agrees with
// the oracle, which looks at everything, whatever happens. And nothing changes
// without a majority of the votes that count.
func TestSameAsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		w.rule(anyRule.Draw(t, "rule"))
		t.Repeat(w.actions())
	})
}

// TestSilenceHolds: once no checker is heard, no verdict changes for ever where the
// rule is to hold.
func TestSilenceHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		t.Repeat(w.actions())
		w.now += aggregate.DefaultStaleness(time.Second) + time.Millisecond
		w.compare(w.aggregator.Tick(w.wall()), w.oracle.tick(w.now))
		for range 1000 {
			at, ok := w.aggregator.NextDeadline()
			if !ok {
				break
			}
			for _, c := range w.aggregator.Tick(at).Changes {
				if w.oracle.endpoints[c.Endpoint].rule.Unobserved == aggregate.Hold {
					t.Fatalf("%s after the last report: %+v", at.Sub(epoch), c)
				}
			}
		}
		if at, ok := w.aggregator.NextDeadline(); ok {
			t.Fatalf("there is no end of deadlines: %s", at.Sub(epoch))
		}
	})
}

// TestOrderOfReports: reports of one moment lead to the same verdicts in any order,
// except for a tie, which depends on the verdict before.
func TestOrderOfReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trusting := aggregate.Doubt{Disagreements: 1000}
		first, second := newTwinsThat(t, trusting, "", ""), newTwinsThat(t, trusting, "", "")
		play := func(reports [][]health.Vote, at time.Duration, seed uint64) {
			first.now, second.now = at, at
			for c, votes := range reports {
				first.aggregator.Report(first.wall(), fmt.Sprint("c", c), votes)
			}
			for _, c := range rand.New(rand.NewPCG(seed, 0)).Perm(len(reports)) {
				second.aggregator.Report(second.wall(), fmt.Sprint("c", c), reports[c])
			}
		}
		draw := func() [][]health.Vote {
			reports := make([][]health.Vote, pool)
			for c := range reports {
				for id := range health.EndpointID(endpoints) {
					reports[c] = append(reports[c], health.Vote{Endpoint: id, Status: rapid.SampledFrom([]health.Status{health.Healthy, health.Unhealthy}).Draw(t, "status")})
				}
			}
			return reports
		}
		play(draw(), time.Second, rapid.Uint64().Draw(t, "order"))
		play(draw(), 2*time.Second, rapid.Uint64().Draw(t, "order"))
		first.now, second.now = 3*time.Second, 3*time.Second
		for id := range health.EndpointID(endpoints) {
			x, y := first.aggregator.Verdict(id), second.aggregator.Verdict(id)
			if diff := cmp.Diff(x.Observations, y.Observations); diff != "" {
				t.Fatalf("other votes:\n%s", diff)
			}
			up, down, awaited := 0, 0, 0
			for _, o := range x.Observations {
				switch {
				case o.Disbelieved != "":
					awaited++
				case o.Status.Up():
					up++
				default:
					down++
				}
			}
			if max(up, down) > min(up, down)+awaited && x.Status != y.Status {
				t.Fatalf("endpoint %d: %s (%s) or %s (%s)", id, x.Status, x.Reason, y.Status, y.Reason)
			}
		}
	})
}
