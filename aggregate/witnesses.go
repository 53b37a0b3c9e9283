package aggregate

import (
	"time"

	"hdsd/health"
)

// ManyVoters is the largest number of votes in counts; it includes all larger numbers.
const ManyVoters = 3

// Voters counts endpoints by the number of votes that count; the last element counts
// those with ManyVoters or more.
type Voters [ManyVoters + 1]int

// witnesses tracks the number of votes that count behind each verdict, up to ManyVoters, and
// since when there is none. The number is in the endpoint's flags.
type witnesses struct {
	clock        *clock
	voters       Voters
	missingSince []uint32 // by EndpointID: second on the clock at which the last vote was lost
}

// The bits of flags that hold the number of votes.
const (
	votersAt        = 14
	hasVoters flags = ManyVoters << votersAt
)

// votersOf returns the number of votes that count, ManyVoters at most.
func (e *endpoint) votersOf() int { return int(e.flags & hasVoters >> votersAt) }

// join adds an endpoint without votes.
func (w *witnesses) join(id health.EndpointID) {
	for int(id) >= len(w.missingSince) {
		w.missingSince = append(w.missingSince, 0)
	}
	w.voters[0]++
	w.missingSince[id] = w.second()
}

// leave removes an endpoint.
func (w *witnesses) leave(e *endpoint) { w.voters[e.votersOf()]-- }

// count sets the present number of votes that count, and reports whether it changed.
func (w *witnesses) count(id health.EndpointID, e *endpoint, votes int) (changed bool) {
	current, previous := min(votes, ManyVoters), e.votersOf()
	if current == previous {
		return false
	}
	w.voters[previous]--
	w.voters[current]++
	e.flags = e.flags&^hasVoters | flags(current)<<votersAt
	if current == 0 {
		w.missingSince[id] = w.second()
	}
	return true
}

// missing returns the time since when no vote counts.
func (w *witnesses) missing(id health.EndpointID) time.Time {
	return w.clock.base.Add(time.Duration(w.missingSince[id]) * time.Second)
}

func (w *witnesses) second() uint32 { return uint32(w.clock.elapsed / time.Second) }
