package aggregate

import (
	"fmt"
	"time"

	"hdsd/health"
)

// A checker is blind that says up through one outage after the other that its peers
// see, as one does that takes every probe for a success. Its ups count nevertheless,
// or those in trouble could take out what one checker still reaches: it is for the
// owner to have so many others check beside the blind that they outnumber them.
const (
	// missesToBlind is how many outages in a row it has to miss, while it sees no
	// other, each in another cluster than the one before: what it alone can reach is
	// mostly of one cluster.
	missesToBlind = 2

	// roundsToMiss is for how many rounds most have to say down meanwhile. By then
	// whoever probes sees it, too, even if one report is lost and the next one late.
	roundsToMiss = 4
)

var missesOutages = fmt.Sprintf("it said up through %d outages in a row that its peers saw", missesToBlind)

// BlindnessChange reports that a checker is blind from now on, or no longer is.
type BlindnessChange struct {
	Checker string
	Blind   bool
	Reason  string // as "it sees an outage that its peers see"
}

// sight is how well a checker sees outages.
type sight struct {
	missed int    // since it last saw one
	last   string // the cluster of the last of them
	seeing int    // that it sees now
}

func (s *sight) blind() bool { return s.missed >= missesToBlind }

// BlindReason tells why a checker is taken to be blind; empty where it is not.
func (a *Aggregator) BlindReason(checker string) string {
	if c, ok := a.checkers.ids[checker]; ok && a.checkers.all[c].sight.blind() {
		return missesOutages
	}
	return ""
}

// outage is what becomes of a vote where most of those that count say down.
type outage uint8

const (
	none   outage = iota
	missed        // it says up
	seen          // it says down, and others do
)

// sightings finds out who sees that an endpoint is down, and who does not.
func (a *Aggregator) sightings(id health.EndpointID, e *endpoint, t *tally) {
	isDown := t.down > t.up
	if !isDown && e.flags&failing == 0 {
		return
	}
	if e.flags &^= failing; isDown {
		e.flags |= failing
	}
	list, p := a.seats.of(e), a.policyOf(e)
	for i := range list {
		s, now := &list[i], none
		switch {
		case !isDown || a.judge(p, e, s) != believed:
		case s.status.Up():
			if !t.inside || t.answered || a.checkers.all[s.checker].zone != e.zone {
				now = missed // else it may be the way there that is cut
			}
		case t.down > 1:
			now = seen
		}
		if s.outage != now {
			a.sight(id, p, s, now)
		}
	}
}

// sight begins or ends that a checker sees an outage or misses it, which counts
// if it lasts.
func (a *Aggregator) sight(id health.EndpointID, p *policy, s *seat, now outage) {
	a.lookAway(s)
	switch s.outage = now; now {
	case seen:
		a.sees(s.checker, "it sees an outage that its peers see")
		a.checkers.all[s.checker].sight.seeing++
	case missed:
		at := a.clock.in(a.clock.elapsed, roundsToMiss*time.Duration(p.round)*time.Millisecond)
		s.until = uint32(at)
		a.deadlines.add(at, pair{id, s.checker})
	}
}

// lookAway ends that a checker sees an outage or misses it.
func (a *Aggregator) lookAway(s *seat) {
	if s.outage == seen {
		a.checkers.all[s.checker].sight.seeing--
	}
	s.outage = none
}

// miss counts an outage that a checker has not seen.
func (a *Aggregator) miss(e *endpoint, c uint32) {
	x, cluster := &a.checkers.all[c], a.clusters.all[e.cluster].key
	k := &x.sight
	if x.word == Trusted || k.blind() || k.seeing > 0 || k.missed > 0 && k.last == cluster {
		return
	}
	k.missed, k.last = k.missed+1, cluster
	if k.blind() {
		a.effects.Blindness = append(a.effects.Blindness, BlindnessChange{x.name, true, missesOutages})
	}
}

// sees has a checker not be blind.
func (a *Aggregator) sees(c uint32, why string) {
	x := &a.checkers.all[c]
	if x.sight.blind() {
		a.effects.Blindness = append(a.effects.Blindness, BlindnessChange{x.name, false, why})
	}
	x.sight.missed = 0
}
