package aggregate

import (
	"fmt"

	"hdsd/health"
)

// A checker is blind if it says up through several outages that its peers see, for
// example because it takes every probe for a success. Its ups count
// nevertheless, or checkers in trouble could take down endpoints that only one
// checker still reaches. The owner adds enough substitutes to outnumber the blind
// checkers.
const (
	// missesToBlind is how many outages in a row make a checker blind if it misses
	// all and sees no other. Each must be in another cluster than the one before,
	// since endpoints that only one checker can reach are mostly of one cluster.
	missesToBlind = 2

	// roundsToMiss is the number of rounds for which most votes must say down before a miss
	// counts. By then every probing checker sees the outage, even if one report is lost and the
	// next one late.
	roundsToMiss = 4
)

var missesOutages = fmt.Sprintf("it said up through %d outages in a row that its peers saw", missesToBlind)

// BlindnessChange reports that a checker became blind, or is no longer blind.
type BlindnessChange struct {
	Checker string
	Blind   bool
	Reason  string // as "it sees an outage that its peers see"
}

// outage relates a vote to an outage, in which most votes that count say down.
type outage uint8

const (
	noOutage outage = iota
	missed          // it says up
	seen            // it says down, and so do others
)

// outages counts the outages that a checker missed.
type outages struct {
	missed int    // outages missed since it last saw one
	last   string // cluster of the latest missed outage
	seen   int    // outages that it currently sees
}

func (o *outages) blind() bool { return o.missed >= missesToBlind }

// blindness finds the checkers that miss outages.
type blindness struct {
	clock     *clock
	deadlines *deadlines
	roster    *roster
	clusters  *clusters
	effects   *Effects
}

// reason returns the reason why a checker is blind; it is empty if the checker is not.
func (b *blindness) reason(c uint32) string {
	if b.roster.checker(c).outages.blind() {
		return missesOutages
	}
	return ""
}

// set records whether a checker sees or misses an outage. A miss counts if it lasts.
func (b *blindness) set(id health.EndpointID, p *policy, s *seat, now outage) {
	b.leave(s)
	switch s.outage = now; now {
	case seen:
		b.clear(s.checker, "it sees an outage that its peers see")
		b.roster.checker(s.checker).outages.seen++
	case missed:
		t := b.clock.tickAfter(roundsToMiss * p.roundTime())
		s.end = uint32(t)
		b.deadlines.add(t, deadline{id, s.checker})
	}
}

// leave records that a checker neither sees nor misses an outage any more.
func (b *blindness) leave(s *seat) {
	if s.outage == seen {
		b.roster.checker(s.checker).outages.seen--
	}
	s.outage = noOutage
}

// due counts an outage that a checker has missed for long enough.
func (b *blindness) due(e *endpoint, s *seat) {
	if s.outage != missed {
		return
	}
	k, cluster := b.roster.checker(s.checker), b.clusters.key(e.cluster)
	o := &k.outages
	if k.trust == Trusted || o.blind() || o.seen > 0 || o.missed > 0 && o.last == cluster {
		return
	}
	o.missed, o.last = o.missed+1, cluster
	if o.blind() {
		b.effects.Blindness = append(b.effects.Blindness, BlindnessChange{k.name, true, missesOutages})
	}
}

// clear forgets the outages that a checker missed.
func (b *blindness) clear(c uint32, reason string) {
	k := b.roster.checker(c)
	if k.outages.blind() {
		b.effects.Blindness = append(b.effects.Blindness, BlindnessChange{k.name, false, reason})
	}
	k.outages.missed = 0
}
