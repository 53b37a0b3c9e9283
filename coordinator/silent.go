package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// mute is what became of the seat of a checker that is connected and reports
// nothing of what it was sent, as an Envoy does that has rejected it.
//
// Its endpoints move as those of a lost checker do: substitutes at once, and
// after the grace period its seat is given up. Then it has no work until its
// stream or its fetches begin anew, or it reports after all. Nothing is sent to
// it meanwhile: an empty specifier would be taken, and the next load rejected
// again.
//
// All this only as long as few are silent, against those who have shown that
// they can report, and for a few of them at a time; who has no seat any more
// does not count. Where many are silent the cause is common to them (a load
// that they all reject, or one that is too much for them or their machine), and
// to give it to those who are left would silence them, too. Then every seat is
// kept, and endpoints that nobody reports keep their last verdict.
type mute struct {
	quiet bool      // it did report, on this stream
	until time.Time // when its seat is given up; zero before it is replaced
	idle  bool      // it was given up
	told  bool      // that it is kept, to the log
}

// replaced tells whether substitutes stand in for it.
func (m *mute) replaced() bool { return m != nil && !m.until.IsZero() }

// Silent implements hds.Sink.
func (c *core) Silent(id string, silent bool) {
	c.post(func() {
		if silent {
			c.fallSilent(id)
		} else {
			c.speakUp(id, time.Now())
		}
	})
}

// findQuiet finds checkers that are connected and have stopped reporting.
func (c *core) findQuiet(now time.Time) {
	if now.Before(c.quietAt) {
		return
	}
	c.quietAt = now.Add(c.timing.report)
	var quiet []string
	for id, known := range c.checkers {
		if known.connected && known.spoken && known.assigned > 0 && c.silent[id] == nil && now.Sub(known.heard) > c.timing.grace+3*c.timing.report {
			c.silent[id] = &mute{quiet: true}
			quiet = append(quiet, id)
		}
	}
	if len(quiet) > 0 {
		c.tellSilent("checkers_quiet", "checkers are connected and have stopped reporting", quiet)
		c.metrics.fleet(c)
	}
}

func (c *core) fallSilent(id string) {
	if known := c.checkers[id]; known != nil && known.connected && c.silent[id] == nil {
		c.silent[id] = &mute{}
		c.metrics.fleet(c)
	}
}

// speakUp has a checker that was silent join again.
func (c *core) speakUp(id string, now time.Time) {
	m := c.silent[id]
	if m == nil {
		return
	}
	delete(c.silent, id)
	c.doubtStirred = true
	if m.replaced() {
		k := c.checkers[id].Checker
		c.checkers[id].cover = uncovered
		c.judge.Connected(now, k)
		c.follow(now, assign.Change{Join: []health.Checker{k}})
		c.dispatch.move(id)
	}
	c.metrics.fleet(c)
}

// idle tells whether a checker is without work for its silence.
func (c *core) idle(id string) bool {
	m := c.silent[id]
	return m != nil && m.idle
}

// replaceSilent moves what silent checkers have, while there are others to take
// it.
func (c *core) replaceSilent(now time.Time) {
	if len(c.silent) == 0 || c.settling {
		return
	}
	if c.holdsSilent() {
		c.tellHeld()
		return
	}
	var lost, leave []string
	for _, id := range slices.Sorted(maps.Keys(c.silent)) {
		m := c.silent[id]
		switch {
		case !m.replaced() && c.mayReplace(now, &c.silentPace):
			m.until = now.Add(c.timing.grace)
			lost = append(lost, id)
			c.judge.Lost(id)
		case m.replaced() && !m.idle && !now.Before(m.until):
			m.idle = true
			leave = append(leave, id)
		}
	}
	if len(lost)+len(leave) == 0 {
		return
	}
	c.tellSilent("silent_replaced", "checkers report nothing of what they were sent: substitutes check it", lost)
	c.tellSilent("silent_given_up", "checkers stay without work until they connect anew or report: others have taken over", leave)
	c.follow(now, assign.Change{Lost: lost, Leave: leave})
	c.metrics.fleet(c)
}

func (c *core) tellSilent(event, text string, ids []string) {
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	c.log.Warn().Str("event", event).Int("count", len(ids)).Strs("checkers", ids[:min(len(ids), seatsNamed)]).Msg(text)
}

func (c *core) tellHeld() {
	var held []string
	for id, m := range c.silent {
		if !m.idle && !m.told {
			m.told = true
			held = append(held, id)
		}
	}
	c.tellSilent("silent_held", "checkers report nothing of what they were sent: they keep it, since fewer than two others report for each of them, or none for a single one", held)
}

// leastPace is the shortest time between two batches of checkers that are replaced,
// however short the grace period is.
const leastPace = 5 * time.Second

// pace is at which checkers are replaced.
type pace struct {
	since time.Time
	count int // since then
}

// mayReplace counts checkers that are replaced: in a grace period, or in 5 s where
// that is longer, two, or one in twenty.
func (c *core) mayReplace(now time.Time, p *pace) bool {
	if now.Sub(p.since) >= max(c.timing.grace, leastPace) {
		*p = pace{since: now}
	}
	if p.count >= max(2, c.connected()/20) {
		return false
	}
	p.count++
	return true
}

// holdsSilent tells whether silent checkers keep their seats, as too few others
// are known to report: less than two for each, or none where one is silent.
func (c *core) holdsSilent() bool {
	silent, reporting := c.heardOf()
	if silent == 1 {
		return reporting == 0
	}
	return 2*silent > reporting
}

// heardOf counts the silent checkers that have a seat and those that are known
// to report.
func (c *core) heardOf() (silent, reporting int) {
	for id, known := range c.checkers {
		switch m := c.silent[id]; {
		case m != nil && !m.idle:
			silent++
		case m == nil && known.connected && (known.spoken || known.assigned == 0):
			reporting++
		}
	}
	return silent, reporting
}

// silenceReason says what became of a silent checker's endpoints.
func (c *core) silenceReason(id string) string {
	switch m := c.silent[id]; {
	case m == nil:
		return ""
	case m.idle:
		return "others check its endpoints now: when the cause is gone, restart the checker"
	case m.replaced():
		return "substitutes check its endpoints, and soon others will"
	case c.settling:
		return "its endpoints stay with it until hdsd has settled after its start"
	case !c.holdsSilent():
		return "its endpoints stay with it until its turn comes: silent checkers are replaced a few at a time"
	}
	silent, reporting := c.heardOf()
	if silent == 1 {
		return "its endpoints stay with it, since no other checker is known to report"
	}
	return fmt.Sprintf("its endpoints stay with it: two others have to report for each silent one, and %d report where %d are silent", reporting, silent)
}
