package aggregate

import (
	"time"

	"hdsd/health"
)

// ManyVoters is the number of votes from which on they are not told apart in counts.
const ManyVoters = 3

// Voters counts endpoints by the number of votes that count; the last element counts
// those with ManyVoters or more.
type Voters [ManyVoters + 1]int

// witnesses knows how many votes that count stand behind each verdict, up to
// ManyVoters, and since when there is none. The number is in the endpoint's flags.
type witnesses struct {
	clock  *clock
	voters Voters
	since  []uint32 // by EndpointID: second on the clock at which the last vote was gone
}

// The bits of flags that hold the number of votes.
const (
	votersAt        = 14
	hasVoters flags = ManyVoters << votersAt
)

// votersOf returns how many votes count, ManyVoters at most.
func (e *endpoint) votersOf() int { return int(e.flags & hasVoters >> votersAt) }

// join adds an endpoint without votes.
func (w *witnesses) join(id health.EndpointID) {
	for int(id) >= len(w.since) {
		w.since = append(w.since, 0)
	}
	w.voters[0]++
	w.since[id] = w.second()
}

// leave removes an endpoint.
func (w *witnesses) leave(e *endpoint) { w.voters[e.votersOf()]-- }

// count takes the number of votes that count now, and reports whether it is another.
func (w *witnesses) count(id health.EndpointID, e *endpoint, votes int) (changed bool) {
	now, was := min(votes, ManyVoters), e.votersOf()
	if now == was {
		return false
	}
	w.voters[was]--
	w.voters[now]++
	e.flags = e.flags&^hasVoters | flags(now)<<votersAt
	if now == 0 {
		w.since[id] = w.second()
	}
	return true
}

// missing returns since when no vote counts.
func (w *witnesses) missing(id health.EndpointID) time.Time {
	return w.clock.base.Add(time.Duration(w.since[id]) * time.Second)
}

func (w *witnesses) second() uint32 { return uint32(w.clock.elapsed / time.Second) }
