package aggregate_test

import (
	"maps"
	"slices"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// oracle is the same judgement done naively: nothing is kept but plain facts,
// and every step looks at every pair and decides every endpoint anew.
type oracle struct {
	staleness, settle time.Duration
	endpoints         map[health.EndpointID]*oracleEndpoint
	checkers          map[string]*oracleChecker // those connected or with a seat somewhere
}

type oracleEndpoint struct {
	timing      aggregate.Timing
	rule        aggregate.Rule
	judged      bool // it had a verdict
	status      health.Status
	dark        bool
	settlingEnd time.Duration // 0: not settling
	pairs       map[string]*oraclePair
}

type oraclePair struct {
	phase  string // "waiting", "overdue", "recreated", "warming", "settled"
	end    time.Duration
	voted  bool
	status health.Status
}

type oracleChecker struct {
	heard     time.Duration
	state     string // "silent", "fresh", "awaited"
	awaitedTo time.Duration
	lost      bool
	here      bool
	zone      string
}

func newOracle() *oracle {
	return &oracle{
		staleness: aggregate.DefaultStaleness(time.Second), settle: 5 * time.Second,
		endpoints: map[health.EndpointID]*oracleEndpoint{}, checkers: map[string]*oracleChecker{},
	}
}

func (o *oracle) set(now time.Duration, id health.EndpointID, t aggregate.Timing, r aggregate.Rule, last health.Verdict) {
	e := o.endpoints[id]
	if e == nil {
		e = &oracleEndpoint{status: last.Status, judged: !last.Since.IsZero(), dark: true, pairs: map[string]*oraclePair{}}
		if r.Unobserved != aggregate.Hold {
			e.settlingEnd = now + o.settle
		}
		o.endpoints[id] = e
	}
	e.timing, e.rule = t, r
}

func (o *oracle) remove(id health.EndpointID) {
	delete(o.endpoints, id)
	o.dropGone()
}

// dropGone forgets the checkers that are gone and have no seat.
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
	e := o.endpoints[id]
	if e == nil {
		return
	}
	if o.checkers[checker] == nil {
		o.checkers[checker] = &oracleChecker{state: "silent"}
	}
	if e.pairs[checker] != nil {
		e.pairs[checker] = &oraclePair{phase: "recreated", end: now + 2*e.timing.ReportInterval}
	} else {
		e.pairs[checker] = &oraclePair{phase: "waiting", end: now + o.settle}
	}
}

func (o *oracle) unassign(id health.EndpointID, checker string) {
	if e := o.endpoints[id]; e != nil {
		delete(e.pairs, checker)
		o.dropGone()
	}
}

func (o *oracle) connected(now time.Duration, checker, zone string) {
	if o.checkers[checker] == nil {
		o.checkers[checker] = &oracleChecker{state: "silent"}
	}
	c := o.checkers[checker]
	c.here, c.zone = true, zone
	o.restart(now, checker)
}

func (o *oracle) restart(now time.Duration, checker string) {
	o.checkers[checker].lost = false
	for _, e := range o.endpoints {
		if p := e.pairs[checker]; p != nil {
			p.phase, p.end = "waiting", now+o.settle
		}
	}
}

func (o *oracle) lost(checker string) {
	if c := o.checkers[checker]; c != nil {
		c.lost, c.here = true, false
		o.dropGone()
	}
}

func warmUp(t aggregate.Timing) time.Duration {
	return t.InitialJitter + t.Timeout + t.ReportInterval + time.Duration(t.UnhealthyThreshold+1)*t.Interval
}

func (o *oracle) report(now time.Duration, checker string, votes []health.Vote) map[health.EndpointID]health.Status {
	c := o.checkers[checker]
	if c == nil {
		return o.tick(now)
	}
	if c.lost {
		o.restart(now, checker)
	}
	c.state, c.heard = "fresh", now
	o.age(now)
	for _, v := range votes {
		e := o.endpoints[v.Endpoint]
		if e == nil || e.pairs[checker] == nil {
			continue
		}
		p := e.pairs[checker]
		p.voted, p.status = true, v.Status
		switch {
		case p.phase == "recreated":
		case v.Status.Up():
			p.phase = "settled"
		case p.phase == "waiting" || p.phase == "overdue":
			p.phase, p.end = "warming", now+warmUp(e.timing)
		}
	}
	return o.decide(now)
}

func (o *oracle) tick(now time.Duration) map[health.EndpointID]health.Status {
	o.age(now)
	return o.decide(now)
}

// age does what time does.
func (o *oracle) age(now time.Duration) {
	for _, c := range o.checkers {
		switch {
		case c.state == "fresh" && now-c.heard > o.staleness:
			c.state, c.awaitedTo = "awaited", now+o.settle
		case c.state == "awaited" && now >= c.awaitedTo:
			c.state = "silent"
		}
	}
	for _, e := range o.endpoints {
		if e.settlingEnd != 0 && now >= e.settlingEnd {
			e.settlingEnd = 0
		}
		for _, p := range e.pairs {
			o.agePair(now, e, p)
		}
	}
}

func (o *oracle) agePair(now time.Duration, e *oracleEndpoint, p *oraclePair) {
	if p.phase == "settled" || p.phase == "overdue" || now < p.end {
		return
	}
	switch {
	case p.phase == "waiting":
		p.phase = "overdue"
	case p.phase == "warming" || p.voted && p.status.Up():
		p.phase = "settled"
	case p.voted:
		p.phase, p.end = "warming", now+warmUp(e.timing)
	default:
		p.phase, p.end = "waiting", now+o.settle
	}
}

// next is the earliest moment at which age would do something.
func (o *oracle) next() (time.Duration, bool) {
	var all []time.Duration
	for _, c := range o.checkers {
		switch c.state {
		case "fresh":
			all = append(all, c.heard+o.staleness+time.Millisecond)
		case "awaited":
			all = append(all, c.awaitedTo)
		}
	}
	for _, e := range o.endpoints {
		if e.settlingEnd != 0 {
			all = append(all, e.settlingEnd)
		}
		for _, p := range e.pairs {
			if p.phase != "settled" && p.phase != "overdue" {
				all = append(all, p.end)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// worth is what a pair's vote is worth: "up", "down", "awaited", "absent" or "".
func (o *oracle) worth(name string, p *oraclePair) string {
	c := o.checkers[name]
	switch {
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
	default:
		return "down"
	}
}

func (o *oracle) decide(now time.Duration) map[health.EndpointID]health.Status {
	changed := map[health.EndpointID]health.Status{}
	for id, e := range o.endpoints {
		if to := o.follow(now, e); to != e.status {
			e.status, e.judged, changed[id] = to, true, to
		}
	}
	return changed
}

// oracleVote is one that counts, or that is awaited.
type oracleVote struct{ zone, side string }

func (o *oracle) follow(now time.Duration, e *oracleEndpoint) health.Status {
	var counting, awaited, absent []oracleVote
	names := map[health.Status]int{}
	for name, p := range e.pairs {
		v := oracleVote{o.checkers[name].zone, o.worth(name, p)}
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
	if len(counting) == 0 {
		e.dark = true
		switch {
		case e.rule.Unobserved == aggregate.Hold, len(awaited) > 0, e.settlingEnd != 0, !e.judged:
			return e.status
		case e.rule.Unobserved == aggregate.TurnUnhealthy:
			return health.Unhealthy
		default:
			return health.Unknown
		}
	}
	if e.dark && len(absent) > 0 {
		e.settlingEnd = now + o.settle
	}
	e.dark = false
	if e.settlingEnd != 0 {
		awaited = append(awaited, absent...)
	}
	side := verdict(e.rule, counting)
	was := "neither"
	switch {
	case e.status.Up():
		was = "up"
	case e.status.Down():
		was = "down"
	}
	if side == "neither" || side == was && len(awaited) > 0 || side != was && !certain(e.rule, counting, awaited, side) {
		return e.status
	}
	first, second := health.Degraded, health.Healthy // the worse first
	if side == "down" {
		first, second = health.Unhealthy, health.Timeout
	}
	if names[first] >= names[second] {
		return first
	}
	return second
}

// certain tells whether the votes come to a side whatever the awaited say.
func certain(r aggregate.Rule, counting, awaited []oracleVote, side string) bool {
	if len(awaited) == 0 {
		return verdict(r, counting) == side
	}
	for _, says := range []string{"up", "down"} {
		with := append(slices.Clone(counting), oracleVote{awaited[0].zone, says})
		if !certain(r, with, awaited[1:], side) {
			return false
		}
	}
	return true
}

// verdict is what votes come to: "up", "down" or "neither".
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
