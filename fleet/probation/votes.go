package probation

import (
	"slices"
	"strings"
	"time"

	"hdsd/health"
)

// Votes are the latest votes of checkers on probation. Make one with New.
type Votes struct {
	checkers map[string]*newcomer
}

// newcomer is the votes of a checker on its stream.
type newcomer struct {
	votes map[health.EndpointID]health.Vote
	heard time.Time
}

// New makes Votes without checkers.
func New() *Votes { return &Votes{checkers: map[string]*newcomer{}} }

// Begin forgets a checker's votes, and keeps its later ones.
func (v *Votes) Begin(checker string) {
	v.checkers[checker] = &newcomer{votes: map[health.EndpointID]health.Vote{}}
}

// Forget forgets a checker's votes, and keeps no later ones.
func (v *Votes) Forget(checker string) { delete(v.checkers, checker) }

// Remove forgets a removed endpoint.
func (v *Votes) Remove(id health.EndpointID) {
	for _, n := range v.checkers {
		delete(n.votes, id)
	}
}

// Report stores the changed votes of a report, if the checker's votes are kept.
func (v *Votes) Report(now time.Time, checker string, votes []health.Vote) {
	n := v.checkers[checker]
	if n == nil {
		return
	}
	n.heard = now
	for _, vote := range votes {
		n.votes[vote.Endpoint] = vote
	}
}

// Of returns a checker's vote on an endpoint.
func (v *Votes) Of(checker string, id health.EndpointID) (vote health.Vote, ok bool) {
	if n := v.checkers[checker]; n != nil {
		vote, ok = n.votes[id]
	}
	return vote, ok
}

// On returns a checker's votes on some endpoints.
func (v *Votes) On(checker string, endpoints []health.EndpointID) (votes []health.Vote) {
	for _, id := range endpoints {
		if vote, ok := v.Of(checker, id); ok {
			votes = append(votes, vote)
		}
	}
	return votes
}

// Observations lists the votes on an endpoint, by checker, with a reason why they do not
// count.
func (v *Votes) Observations(id health.EndpointID, reason string) (list []health.Observation) {
	for checker, n := range v.checkers {
		if vote, ok := n.votes[id]; ok {
			list = append(list, health.Observation{
				Checker: checker, Status: vote.Status, HTTPStatusCode: vote.HTTPStatusCode, Time: n.heard, Disbelieved: reason,
			})
		}
	}
	slices.SortFunc(list, func(a, b health.Observation) int { return strings.Compare(a.Checker, b.Checker) })
	return list
}
