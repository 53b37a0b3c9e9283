package aggregate_test

import (
	"maps"
	"slices"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// oracle judges in the same way, but naively: it keeps nothing but plain facts, and
// every step looks at every pair and decides every endpoint anew.
type oracle struct {
	staleness, awaitFor time.Duration
	now, watched        time.Duration // without pauses: of one that is longer than the staleness, only so much counts
	doubt               aggregate.Doubt
	paths               map[[2]string]*oracleDoubt
	divisions           map[string]*oracleDivision // by zone
	trusts              map[string]aggregate.OperatorTrust
	endpoints           map[health.EndpointID]*oracleEndpoint
	checkers            map[string]*oracleChecker // those connected or with a seat somewhere
}

type oracleEndpoint struct {
	timing         aggregate.Timing
	rule           aggregate.Rule
	zone           string
	cluster        string
	judged         bool // it had a verdict
	status         health.Status
	unobserved     bool
	awaitAbsentEnd time.Duration // 0: does not await the absent
	confirmEnd     time.Duration // 0: needs no confirmation
	confirmed      bool
	nameEnd        time.Duration // 0: keeps no name
	countsCut      bool          // votes over a cut path count
	pairs          map[string]*oraclePair
	oracleBudget
}

type oraclePair struct {
	phase  string // "waiting", "overdue", "recreated", "warming", "warm", "recovering"
	end    time.Duration
	voted  bool
	said   health.Status
	status health.Status // what that counts as
	code   uint16
	began  uint16        // the code with which it began to say what it says
	fell   time.Duration // the report with which it began to say down
	outage string        // "missed" or "seen" where most say down
	missed time.Duration // when that counts; 0: not, or it did
}

// failsNow tells whether the latest probe behind a vote of HEALTHY failed.
func (p *oraclePair) failsNow() bool {
	return p.status == health.Healthy && p.code != p.began && (p.code == 0 || p.code >= 400)
}

type oracleChecker struct {
	heard     time.Duration
	state     string // "silent", "heard", "awaited"
	awaitedTo time.Duration
	lost      bool
	here      bool
	fresh     bool
	trust     aggregate.OperatorTrust
	zone      string
	misses    []string // clusters of outages that it missed in a row
	oracleDoubt
}

type oracleDoubt struct {
	doubted bool
	release time.Duration // 0: not scheduled
}

// testDoubt are low limits, so that a few votes are enough.
var testDoubt = aggregate.Doubt{
	Disagreements: 2, Share: 0.4, PathDisagreements: 1, PathShare: 0.3, PathNoise: 0.3, Release: 0.2, ReleaseAfter: 700 * time.Millisecond,
}

func newOracle(doubt aggregate.Doubt) *oracle {
	return &oracle{
		staleness: aggregate.DefaultStaleness(time.Second), awaitFor: 5 * time.Second,
		doubt: doubt, paths: map[[2]string]*oracleDoubt{}, divisions: map[string]*oracleDivision{}, trusts: map[string]aggregate.OperatorTrust{},
		endpoints: map[health.EndpointID]*oracleEndpoint{}, checkers: map[string]*oracleChecker{},
	}
}

func (o *oracle) set(now time.Duration, id health.EndpointID, t aggregate.Timing, r aggregate.Rule, zone string, last health.Verdict) {
	e := o.endpoints[id]
	if e == nil {
		e = &oracleEndpoint{status: last.Status, judged: !last.Since.IsZero(), unobserved: true, pairs: map[string]*oraclePair{}}
		if r.Unobserved != aggregate.Hold {
			e.awaitAbsentEnd = now + o.awaitFor
		}
		o.endpoints[id] = e
	}
	before := e.rule
	e.timing, e.rule, e.zone, e.cluster = t, r, zone, clusterOf(id)
	for name, p := range e.pairs {
		if before == r || !p.voted || p.phase == "waiting" || p.phase == "overdue" {
			continue
		}
		o.setVote(now, e, o.checkers[name], p, p.said)
	}
}

// at lets time pass.
func (o *oracle) at(now time.Duration) {
	o.watched += min(now-o.now, o.staleness)
	o.now = now
}

func (o *oracle) setTrust(checker string, trust aggregate.OperatorTrust) {
	o.trusts[checker] = trust
	if c := o.checkers[checker]; c != nil {
		c.trust = trust
		if trust == aggregate.Trusted {
			c.oracleDoubt, c.misses = oracleDoubt{}, nil
		}
	}
}

// checkerOf returns a checker, a new one where there is none.
func (o *oracle) checkerOf(name string) *oracleChecker {
	if o.checkers[name] == nil {
		o.checkers[name] = &oracleChecker{state: "silent", trust: o.trusts[name]}
	}
	return o.checkers[name]
}

func (o *oracle) remove(id health.EndpointID) {
	delete(o.endpoints, id)
	o.dropGone()
}

// dropGone forgets the checkers that are lost and have no seat.
func (o *oracle) dropGone() {
	maps.DeleteFunc(o.checkers, func(name string, c *oracleChecker) bool {
		if c.here {
			return false
		}
		for _, e := range o.endpoints {
			if e.pairs[name] != nil {
				return false
			}
		}
		return true
	})
}

func (o *oracle) assign(now time.Duration, id health.EndpointID, checker string) {
	o.at(now)
	e := o.endpoints[id]
	if e == nil {
		return
	}
	o.checkerOf(checker)
	if e.pairs[checker] != nil {
		e.pairs[checker] = &oraclePair{phase: "recreated", end: now + 2*e.timing.ReportInterval}
	} else {
		e.pairs[checker] = &oraclePair{phase: "waiting", end: now + o.awaitFor}
	}
}

func (o *oracle) unassign(now time.Duration, id health.EndpointID, checker string) {
	o.at(now)
	if e := o.endpoints[id]; e != nil {
		delete(e.pairs, checker)
		o.dropGone()
	}
}

func (o *oracle) connected(now time.Duration, k health.Checker) {
	o.at(now)
	checker, c := k.ID, o.checkerOf(k.ID)
	c.here, c.zone, c.fresh = true, k.Locality.Zone, k.Abilities.Has(health.FreshCodes)
	o.restart(now, checker)
}

func (o *oracle) restart(now time.Duration, checker string) {
	o.checkers[checker].lost, o.checkers[checker].misses = false, nil
	for _, e := range o.endpoints {
		if p := e.pairs[checker]; p != nil {
			p.phase, p.end = "waiting", now+o.awaitFor
			p.outage, p.missed = "", 0
		}
	}
}

func (o *oracle) lost(checker string) {
	if c := o.checkers[checker]; c != nil {
		c.lost, c.here = true, false
		o.dropGone()
	}
}

func warmUp(e *oracleEndpoint) time.Duration {
	t := e.timing
	if e.rule.WarmUp > 0 {
		return e.rule.WarmUp
	}
	return t.InitialJitter + t.Timeout + t.ReportInterval + time.Duration(t.UnhealthyThreshold+1)*t.Interval
}

func (o *oracle) report(now time.Duration, checker string, votes []health.Vote) map[health.EndpointID]health.Status {
	o.at(now)
	c := o.checkers[checker]
	if c == nil {
		return o.tick(now)
	}
	if c.lost {
		o.restart(now, checker)
	}
	if c.state != "heard" {
		for _, e := range o.endpoints {
			if p := e.pairs[checker]; p != nil && p.phase == "warm" {
				p.fell = now
			}
		}
	}
	c.state, c.heard = "heard", now
	o.age(now)
	for _, v := range votes {
		e := o.endpoints[v.Endpoint]
		if e == nil || e.pairs[checker] == nil {
			continue
		}
		p := e.pairs[checker]
		p.voted, p.code = true, v.HTTPStatusCode
		o.setVote(now, e, c, p, v.Status)
	}
	return o.decide(now)
}

func (o *oracle) tick(now time.Duration) map[health.EndpointID]health.Status {
	o.at(now)
	o.age(now)
	return o.decide(now)
}

// age ends everything whose time is over.
func (o *oracle) age(now time.Duration) {
	for _, c := range o.checkers {
		switch {
		case c.state == "heard" && now-c.heard > o.staleness:
			c.state, c.awaitedTo = "awaited", now+o.awaitFor
		case c.state == "awaited" && now >= c.awaitedTo:
			c.state = "silent"
		}
	}
	o.endLone(now)
	for _, d := range o.doubts() {
		if d.release != 0 && now >= d.release {
			*d = oracleDoubt{}
		}
	}
	o.endCuts(now)
	for _, e := range o.endpoints {
		if e.awaitAbsentEnd != 0 && now >= e.awaitAbsentEnd {
			e.awaitAbsentEnd = 0
		}
		if e.confirmEnd != 0 && now >= e.confirmEnd {
			e.confirmEnd, e.confirmed = 0, true
		}
		if e.nameEnd != 0 && now >= e.nameEnd {
			e.nameEnd, e.confirmed = 0, true
		}
		if e.spending && o.watched >= e.end {
			e.spending, e.exhausted = false, true
		}
		for name, p := range e.pairs {
			o.agePair(now, e, p, o.checkers[name])
			if c := o.checkers[name]; p.missed != 0 && now >= p.missed {
				if p.missed = 0; c.trust != aggregate.Trusted && !o.seesOutage(name) {
					c.misses = append(c.misses, e.cluster)
				}
			}
		}
	}
}

func (o *oracle) agePair(now time.Duration, e *oracleEndpoint, p *oraclePair, c *oracleChecker) {
	if p.phase == "warm" || p.phase == "overdue" || now < p.end {
		return
	}
	switch {
	case p.phase == "waiting":
		p.phase = "overdue"
	case p.phase == "recovering":
		p.phase, p.status, p.began = "warm", health.Degraded, p.code
	case p.phase == "warming" || p.voted && p.status.Up():
		if p.phase = "warm"; p.status.Down() {
			p.fell = c.heard
			o.setVote(now, e, c, p, p.said)
		}
	case p.voted:
		p.phase, p.end = "warming", now+o.warmUpFrom(e, 2*e.timing.ReportInterval)
		o.believeAnswer(now, e, c, p)
		o.agePair(now, e, p, c)
	default:
		p.phase, p.end = "waiting", now+o.awaitFor
	}
}

// next is the earliest moment at which age would do something.
func (o *oracle) next() (time.Duration, bool) {
	var all []time.Duration
	for _, c := range o.checkers {
		switch c.state {
		case "heard":
			all = append(all, c.heard+o.staleness+time.Millisecond)
		case "awaited":
			all = append(all, c.awaitedTo)
		}
	}
	for _, d := range o.doubts() {
		if d.release != 0 {
			all = append(all, d.release)
		}
	}
	for _, d := range o.divisions {
		if d.lone {
			all = append(all, d.until)
		}
	}
	for _, e := range o.endpoints {
		if e.awaitAbsentEnd != 0 {
			all = append(all, e.awaitAbsentEnd)
		}
		if e.confirmEnd != 0 {
			all = append(all, e.confirmEnd)
		}
		if e.nameEnd != 0 {
			all = append(all, e.nameEnd)
		}
		if e.spending {
			all = append(all, o.now+e.end-o.watched)
		}
		for _, p := range e.pairs {
			if p.phase != "warm" && p.phase != "overdue" {
				all = append(all, p.end)
			}
			if p.missed != 0 {
				all = append(all, p.missed)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// worth is what a pair's vote is worth: "up", "down", "awaited", "absent" or "".
func (o *oracle) worth(e *oracleEndpoint, name string, p *oraclePair) string {
	c := o.checkers[name]
	switch {
	case c.trust == aggregate.Distrusted:
		return ""
	case p.phase == "waiting" || p.phase == "recreated":
		return "awaited"
	case p.phase == "overdue" || c.state == "silent":
		return "absent"
	case c.state == "awaited":
		return "awaited"
	case p.status.Up():
		return "up"
	case !p.status.Down():
		return ""
	case p.phase == "warming":
		return "awaited"
	case c.doubted || o.cut(e, c) && !e.countsCut:
		return ""
	default:
		return "down"
	}
}

// cut tells whether a path from the checker to the endpoint is doubted.
func (o *oracle) cut(e *oracleEndpoint, c *oracleChecker) bool {
	for _, from := range waysFrom(e, c) {
		if path := o.paths[[2]string{from, e.zone}]; path != nil && path.doubted {
			return true
		}
	}
	return false
}

// waysFrom are where a vote comes from: its checker's zone, and all but the
// endpoint's.
func waysFrom(e *oracleEndpoint, c *oracleChecker) []string {
	if c.zone == "" || e.zone == "" || c.zone == e.zone {
		return nil
	}
	return []string{c.zone, "elsewhere"}
}

func (o *oracle) doubts() []*oracleDoubt {
	var all []*oracleDoubt
	for _, c := range o.checkers {
		all = append(all, &c.oracleDoubt)
	}
	for _, d := range o.paths {
		all = append(all, d)
	}
	return all
}

// contradicted tells whether the others contradict a vote of down: most of
// them, or most of those in the endpoint's zone.
func (o *oracle) contradicted(e *oracleEndpoint, name string) (byPeers, byZone bool) {
	v := o.count(e)
	if o.worth(e, name, e.pairs[name]) == "down" {
		v.downs--
	}
	heard := 0
	for other, p := range e.pairs {
		if c := o.checkers[other]; p.counts() && c.state == "heard" && c.trust != aggregate.Distrusted && p.status.Down() {
			heard++
		}
	}
	return v.ups > v.downs && (v.ups > 1 || heard == 1), v.ownUps > v.ownDowns && o.checkers[name].zone != e.zone
}

// records counts votes and contradicted ones, by checker and by path.
func (o *oracle) records() (map[string]*oracleRecord, map[[2]string]*oracleRecord) {
	checkers, paths := map[string]*oracleRecord{}, map[[2]string]*oracleRecord{}
	for name := range o.checkers {
		checkers[name] = &oracleRecord{}
	}
	for key := range o.paths {
		paths[key] = &oracleRecord{}
	}
	for _, e := range o.endpoints {
		for name, p := range e.pairs {
			c := o.checkers[name]
			if !p.counts() || c.state != "heard" || c.trust == aggregate.Distrusted || !p.status.Up() && !p.status.Down() {
				continue
			}
			byPeers, byZone := false, false
			if p.status.Down() {
				byPeers, byZone = o.contradicted(e, name)
			}
			island := o.paths[[2]string{"elsewhere", c.zone}]
			if !o.cut(e, c) && (island == nil || !island.doubted || c.zone == "" || c.zone == e.zone) {
				count(checkers[name], p, byPeers)
			}
			for _, from := range waysFrom(e, c) {
				key := [2]string{from, e.zone}
				if paths[key] == nil {
					paths[key], o.paths[key] = &oracleRecord{}, &oracleDoubt{}
				}
				contradicted := (byPeers || byZone) && p.code < 400
				count(paths[key], p, contradicted)
				count(paths[key].of(name), p, contradicted)
				if p.status.Down() && p.code < 400 && o.count(e).ownUps > 0 {
					paths[key].opposed++
				}
			}
		}
	}
	return checkers, paths
}

// review begins doubt until nothing follows, among checkers, then among paths, and
// schedules its end.
func (o *oracle) review(now time.Duration) {
	o.refresh()
	for more := true; more; more = o.divide(now) {
		for o.doubtCheckers() || o.doubtPaths(now) {
		}
	}
	checkers, paths := o.records()
	for name, r := range checkers {
		o.scheduleRelease(now, &o.checkers[name].oracleDoubt, r)
	}
	for key, r := range paths {
		o.scheduleRelease(now, o.paths[key], r)
	}
}

func (o *oracle) doubtCheckers() (more bool) {
	checkers, _ := o.records()
	for name, r := range checkers {
		c := o.checkers[name]
		if c.trust != aggregate.Trusted && !c.doubted && r.contradicted >= o.doubt.Disagreements && r.share() >= o.doubt.Share {
			c.doubted, more = true, true
		}
	}
	return more
}

// doubtPaths goes on among paths before anything follows for checkers.
func (o *oracle) doubtPaths(now time.Duration) (any bool) {
	for more := true; more; {
		more = false
		_, paths := o.records()
		for key, r := range paths {
			contradicted, share := o.doubt.PathDisagreements, o.doubt.PathShare
			if key[0] == "elsewhere" {
				contradicted, share = o.doubt.Disagreements, 0.8
			}
			if d := o.paths[key]; !d.doubted && r.contradicted >= contradicted && r.share() >= share && o.mayCut(key[1]) {
				o.beginCut(now, key[1])
				d.doubted, more, any = true, true, true
			}
		}
	}
	return any
}

func (o *oracle) scheduleRelease(now time.Duration, d *oracleDoubt, r *oracleRecord) {
	end := now + o.doubt.ReleaseAfter
	if r.downs > 0 && float64(r.downs) >= o.doubt.Share*float64(r.votes) {
		end = now + time.Millisecond
	}
	switch {
	case !d.doubted || r.share() >= o.doubt.Release:
		d.release = 0
	case d.release == 0 || end < d.release:
		d.release = end
	}
}

func (o *oracle) decide(now time.Duration) map[health.EndpointID]health.Status {
	o.review(now)
	changed := map[health.EndpointID]health.Status{}
	for id, e := range o.endpoints {
		if to := o.statusOf(now, e); to != e.status {
			e.status, e.judged, changed[id] = to, true, to
			e.oracleBudget = oracleBudget{}
		} else {
			o.updateBudget(e)
		}
		o.trackOutages(now, e)
	}
	o.refresh()
	return changed
}

// oracleVote is one that counts, or that is awaited.
type oracleVote struct {
	zone, side string
	run        int // rounds in which it said down
}

// slack is by how much a report may come too early: half an interval, in whole
// milliseconds.
func slack(e *oracleEndpoint) time.Duration {
	return (e.timing.ReportInterval/2 + time.Millisecond - 1).Truncate(time.Millisecond)
}

// run is how many rounds a pair has said down.
func (o *oracle) run(e *oracleEndpoint, name string) int {
	round := max(e.timing.Interval, e.timing.ReportInterval, time.Millisecond)
	if e.pairs[name].phase == "recovering" {
		return 1
	}
	return 1 + int((o.checkers[name].heard-e.pairs[name].fell+slack(e))/round)
}

// statusOf returns the status that follows from the votes now.
func (o *oracle) statusOf(now time.Duration, e *oracleEndpoint) health.Status {
	to, unobserved := o.statusByRule(now, e)
	if unobserved {
		return to
	}
	if to.Down() && e.status.Down() && to != e.status {
		switch {
		case e.confirmed:
			e.confirmEnd, e.nameEnd, e.confirmed = 0, 0, false
			return to
		case e.nameEnd == 0 && e.awaitAbsentEnd == 0:
			e.nameEnd, e.confirmEnd = now+10*max(e.timing.Interval, e.timing.ReportInterval, time.Millisecond), 0
		}
		return e.status
	}
	e.nameEnd = 0
	firm, counting, sure, ups := false, 0, 0, 0
	for name, p := range e.pairs {
		switch worth := o.worth(e, name, p); {
		case worth == "up":
			ups++
		case worth == "down" && !o.cut(e, o.checkers[name]):
			sure++
		}
		if worth := o.worth(e, name, p); worth == "up" || worth == "down" {
			counting++
		}
		firm = firm || o.worth(e, name, p) == "up" && !p.failsNow()
	}
	majority := e.rule.Kind == aggregate.Majority
	byMajority := majority || e.rule.Kind == aggregate.Score
	cut := byMajority && o.looksCut(e)
	alone := majority && counting == 1 && len(e.pairs) > 1
	wavering := byMajority && to.Up() && e.status.Down() && !firm
	cut = cut && !o.held(e.zone)
	divided := byMajority && sure+ups < counting && sure <= ups
	uncertain := to.Down() && !e.status.Down() && (cut || divided || alone) || wavering
	if !uncertain || e.confirmed || e.exhausted {
		e.confirmEnd, e.confirmed = 0, false
		return to
	}
	if e.confirmEnd == 0 && e.awaitAbsentEnd == 0 {
		end := now + max(o.staleness, e.timing.Interval, e.timing.ReportInterval, time.Millisecond)
		if cut && o.ownHeard(e) && o.looksIntact(e) {
			end = min(end, o.nextReport(e))
		}
		if end <= now {
			return to
		}
		e.confirmEnd = end
	}
	return e.status
}

// deserted tells whether most checkers of a zone are lost.
func (o *oracle) deserted(zone string) bool {
	lost, all := 0, 0
	for _, c := range o.checkers {
		if c.zone != zone {
			continue
		}
		all++
		if c.lost {
			lost++
		}
	}
	return 2*lost > all
}

// looksIntact tells whether hardly anything else is contradicted from elsewhere.
func (o *oracle) looksIntact(e *oracleEndpoint) bool {
	_, paths := o.records()
	r := paths[[2]string{"elsewhere", e.zone}]
	if r == nil {
		return false
	}
	others := r.contradicted
	for name, p := range e.pairs {
		c := o.checkers[name]
		if !p.counts() || c.state != "heard" || c.trust == aggregate.Distrusted || !p.status.Down() || len(waysFrom(e, c)) == 0 {
			continue
		}
		if byPeers, byZone := o.contradicted(e, name); (byPeers || byZone) && p.code < 400 {
			others--
		}
	}
	return float64(others+1) <= o.doubt.PathNoise*float64(r.votes)
}

// nextReport is when the checkers in the endpoint's own zone must have reported once
// more.
func (o *oracle) nextReport(e *oracleEndpoint) time.Duration {
	var last time.Duration
	for name := range e.pairs {
		if c := o.checkers[name]; c.zone == e.zone {
			last = max(last, c.heard)
		}
	}
	return last + max(e.timing.Interval, e.timing.ReportInterval, time.Millisecond) + slack(e)
}

// statusByRule is statusOf where no change has to last first.
func (o *oracle) statusByRule(now time.Duration, e *oracleEndpoint) (to health.Status, unobserved bool) {
	counting, awaited, absent, names := o.votes(e)
	if e.exhausted {
		awaited, absent = nil, nil
	}
	if len(counting) == 0 {
		e.unobserved = true
		switch {
		case e.rule.Unobserved == aggregate.Hold, len(awaited) > 0, e.awaitAbsentEnd != 0 && !e.exhausted, !e.judged:
			return e.status, true
		default:
			return lapsed(e.rule), true
		}
	}
	if e.unobserved && len(absent) > 0 {
		e.awaitAbsentEnd, e.confirmEnd, e.nameEnd = now+o.awaitFor, 0, 0
	}
	e.unobserved = false
	if e.awaitAbsentEnd != 0 {
		awaited = append(awaited, absent...)
	}
	side := verdict(e.rule, counting)
	was := sideOf(e.status)
	if side == "neither" || side == was && len(awaited) > 0 || side != was && !certain(e.rule, counting, awaited, side) {
		return e.status, false
	}
	return nameOf(side, names), false
}

// votes returns the votes that count, with their names, those that are awaited, and
// those that are absent.
func (o *oracle) votes(e *oracleEndpoint) (counting, awaited, absent []oracleVote, names map[health.Status]int) {
	names = map[health.Status]int{}
	for name, p := range e.pairs {
		v := oracleVote{o.checkers[name].zone, o.worth(e, name, p), o.run(e, name)}
		switch v.side {
		case "up", "down":
			counting = append(counting, v)
			names[p.status]++
		case "awaited":
			awaited = append(awaited, v)
		case "absent":
			absent = append(absent, v)
		}
	}
	return counting, awaited, absent, names
}

// certain tells whether the votes come to a side whatever the awaited ones are.
func certain(r aggregate.Rule, counting, awaited []oracleVote, side string) bool {
	if len(awaited) == 0 {
		return verdict(r, counting) == side
	}
	for _, says := range []string{"up", "down"} {
		with := append(slices.Clone(counting), oracleVote{awaited[0].zone, says, 3})
		if !certain(r, with, awaited[1:], side) {
			return false
		}
	}
	return true
}

// enough tells whether the runs of downs are long enough.
func enough(votes []oracleVote) bool {
	if len(votes) == 1 {
		return votes[0].run >= 4
	}
	score := 0
	for _, v := range votes {
		if v.side == "down" {
			score += min(v.run, 3)
		}
	}
	return score >= len(votes)+2
}

// verdict is the side that votes come to: "up", "down" or "neither".
func verdict(r aggregate.Rule, votes []oracleVote) string {
	sides := map[string]int{}
	byZone := map[string][]oracleVote{}
	for _, v := range votes {
		sides[v.side]++
		byZone[v.zone] = append(byZone[v.zone], v)
	}
	fails := false
	switch r.Kind {
	case aggregate.Any:
		fails = sides["down"] > 0
	case aggregate.All:
		fails = sides["up"] == 0
	case aggregate.AtLeast:
		if fails = sides["down"] >= r.AtLeast; !fails && sides["up"] == 0 {
			return "neither"
		}
	case aggregate.Share:
		fails = float64(sides["up"])/float64(len(votes)) <= r.Share
	case aggregate.Score:
		if sides["down"] > sides["up"] && !enough(votes) {
			return "neither"
		}
		return verdict(aggregate.Rule{}, votes)
	case aggregate.ZoneMajority:
		var zones []oracleVote
		for _, of := range byZone {
			zones = append(zones, oracleVote{side: verdict(aggregate.Rule{}, of)})
		}
		return verdict(aggregate.Rule{}, zones)
	default:
		if sides["up"] == sides["down"] {
			return "neither"
		}
		fails = sides["down"] > sides["up"]
	}
	if fails {
		return "down"
	}
	return "up"
}
