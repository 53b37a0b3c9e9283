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
	checkers          map[string]*oracleChecker // those with a seat somewhere
}

type oracleEndpoint struct {
	timing      aggregate.Timing
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
}

func newOracle() *oracle {
	return &oracle{
		staleness: aggregate.DefaultStaleness(time.Second), settle: 5 * time.Second,
		endpoints: map[health.EndpointID]*oracleEndpoint{}, checkers: map[string]*oracleChecker{},
	}
}

func (o *oracle) set(id health.EndpointID, t aggregate.Timing, last health.Status) {
	e := o.endpoints[id]
	if e == nil {
		e = &oracleEndpoint{status: last, dark: true, pairs: map[string]*oraclePair{}}
		o.endpoints[id] = e
	}
	e.timing = t
}

func (o *oracle) remove(id health.EndpointID) {
	delete(o.endpoints, id)
	o.dropSeatless()
}

func (o *oracle) dropSeatless() {
	maps.DeleteFunc(o.checkers, func(name string, _ *oracleChecker) bool {
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
		o.dropSeatless()
	}
}

func (o *oracle) connected(now time.Duration, checker string) {
	c := o.checkers[checker]
	if c == nil {
		return
	}
	c.lost = false
	for _, e := range o.endpoints {
		if p := e.pairs[checker]; p != nil {
			p.phase, p.end = "waiting", now+o.settle
		}
	}
}

func (o *oracle) lost(checker string) {
	if c := o.checkers[checker]; c != nil {
		c.lost = true
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
		o.connected(now, checker)
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
		worths := map[string]int{}
		names := map[health.Status]int{}
		for name, p := range e.pairs {
			w := o.worth(name, p)
			worths[w]++
			if w == "up" || w == "down" {
				names[p.status]++
			}
		}
		up, down := worths["up"], worths["down"]
		if up+down == 0 {
			e.dark = true
			continue
		}
		if e.dark {
			e.dark = false
			if worths["absent"] > 0 {
				e.settlingEnd = now + o.settle
			}
		}
		awaited := worths["awaited"]
		if e.settlingEnd != 0 {
			awaited += worths["absent"]
		}
		if to := follow(e.status, up, down, awaited, names); to != e.status {
			e.status, changed[id] = to, to
		}
	}
	return changed
}

func follow(last health.Status, up, down, awaited int, names map[health.Status]int) health.Status {
	first, second := health.Degraded, health.Healthy // the worse first
	switch {
	case up == down, up > down && last.Up() && awaited > 0, down > up && last.Down() && awaited > 0:
		return last
	case up > down && !last.Up() && up <= down+awaited, down > up && !last.Down() && down <= up+awaited:
		return last
	case down > up:
		first, second = health.Unhealthy, health.Timeout
	}
	if names[first] >= names[second] {
		return first
	}
	return second
}
