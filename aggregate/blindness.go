package aggregate

import (
	"fmt"

	"hdsd/health"
)

// A checker is blind that says up through one outage after the other that its peers
// see, as one does that takes every probe for a success. Its ups count nevertheless,
// or checkers in trouble could take out what one checker still reaches: it is for the
// owner to add so many substitutes that they outnumber the blind.
const (
	// missesToBlind is how many outages in a row it has to miss while it sees no
	// other, each in another cluster than the one before. Endpoints that it alone
	// can reach are mostly of one cluster.
	missesToBlind = 2

	// roundsToMiss is for how many rounds most have to say down meanwhile. By then
	// every checker that probes sees the outage, even if one report is lost and the
	// next late.
	roundsToMiss = 4
)

var missesOutages = fmt.Sprintf("it said up through %d outages in a row that its peers saw", missesToBlind)

// BlindnessChange reports that a checker is blind from now on, or no longer is.
type BlindnessChange struct {
	Checker string
	Blind   bool
	Reason  string // as "it sees an outage that its peers see"
}

// outage says how a vote stands to an outage, where most votes that count say down.
type outage uint8

const (
	noOutage outage = iota
	missed          // it says up
	seen            // it says down, and others do
)

// outages counts the outages that a checker missed.
type outages struct {
	missed int    // since it last saw one
	last   string // the cluster of the last of them
	seen   int    // those that it sees now
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

// reason says why a checker is taken to be blind; empty where it is not.
func (b *blindness) reason(c uint32) string {
	if b.roster.checker(c).outages.blind() {
		return missesOutages
	}
	return ""
}

// set records that a checker sees an outage or misses it; a miss counts if it lasts.
func (b *blindness) set(id health.EndpointID, p *policy, s *seat, now outage) {
	b.leave(s)
	switch s.outage = now; now {
	case seen:
		b.clear(s.checker, "it sees an outage that its peers see")
		b.roster.checker(s.checker).outages.seen++
	case missed:
		at := b.clock.in(roundsToMiss * p.roundTime())
		s.until = uint32(at)
		b.deadlines.add(at, deadline{id, s.checker})
	}
}

// leave ends that a checker sees an outage or misses it.
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
func (b *blindness) clear(c uint32, why string) {
	k := b.roster.checker(c)
	if k.outages.blind() {
		b.effects.Blindness = append(b.effects.Blindness, BlindnessChange{k.name, false, why})
	}
	k.outages.missed = 0
}
