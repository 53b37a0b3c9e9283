package aggregate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hdsd/health"
)

// maxNamed bounds the checkers that a reason names for one cause.
const maxNamed = 5

// reasons explains verdicts in words.
type reasons struct {
	settings *settings
	roster   *roster
	counter  *counter
	records  *records
	doubts   *doubts
	damping  *damping
	mass     *massFailures
	trust    trusts

	votes    repeated[health.Observation]
	repeated repeatedText
}

// observations lists the latest votes, by checker. The list must not be modified.
func (r *reasons) observations(e *endpoint) []health.Observation {
	list := r.votes.room[:0]
	seats := r.roster.seatsOf(e)
	for i := range seats {
		s := &seats[i]
		if s.status == noVote {
			continue
		}
		c := r.roster.checker(s.checker)
		list = append(list, health.Observation{
			Checker: c.name, Status: s.status, HTTPStatusCode: s.code, Time: c.heard,
			Disbelieved: r.disbelief(e, s),
		})
	}
	slices.SortFunc(list, func(x, y health.Observation) int { return cmp.Compare(x.Checker, y.Checker) })
	return r.votes.share(list)
}

// explain returns the reason of an endpoint's verdict.
func (r *reasons) explain(id health.EndpointID, e *endpoint, t *tally) string {
	rule := &r.settings.ofEndpoint(e).Rule
	status, outcome := rule.decide(t, e.status)
	reason := ""
	switch {
	case e.has(awaitsConfirmation|awaitsAbsent) && outcome == decided && status.Up() && e.status.Down():
		reason = t.sides(rule) + ", though the latest probes failed; whether more do shows soon"
	case e.has(awaitsConfirmation) && !t.inside && t.leansOnCut():
		reason = t.sides(rule) + ", some over a path that is doubted; whether its own zone goes on agreeing shows soon"
	case e.has(awaitsConfirmation) && t.muted:
		reason = t.sides(rule) + ", but no checker in its own zone is believed; whether the way there is cut shows soon"
	case e.has(awaitsConfirmation) && !t.inside:
		reason = t.sides(rule) + ", alone; whether it goes on saying so shows soon"
	case e.has(awaitsConfirmation):
		reason = t.sides(rule) + ", but a checker in its own zone says up; whether the way there is cut shows soon"
	case e.has(isHeldBack) && !e.status.Down():
		reason = t.sides(rule) + ", but so they do of more than half of the cluster at once, and zones do not agree; it waits until " + r.mass.untilText(e.cluster)
	case r.damping.holds(id, e):
		reason = t.sides(rule) + ", but " + r.damping.reason(id)
	case e.has(awaitsAbsent) && outcome == decided && sideOf(status) != sideOf(e.status):
		reason = t.sides(rule) + ", but a checker in its own zone is awaited"
	case e.has(awaitsName) && outcome == decided:
		reason = t.sides(rule) + ", down either way; whether that lasts shows soon"
	case outcome == decided:
		return r.repeated.share(t.appendSides(r.repeated.room[:0], rule)) + t.lonely(rule) + r.notes(e, t)
	case outcome == outnumbered:
		reason = fmt.Sprintf("%s, but %d of %d planned are lost, and no down counts without them for %s", t.sides(rule), t.lost, rule.Votes, rule.QuorumHold)
	case outcome == lapsed:
		return fmt.Sprintf("%s: by configuration %s then", r.noVotes(e), e.status) + r.notes(e, t)
	case outcome == tied:
		reason = t.tie(rule)
	case outcome == unsettled:
		reason = fmt.Sprintf("%s, %d awaited", t.sides(rule), t.awaited)
	default:
		reason = r.noVotes(e)
	}
	if e.verdictTime == never && e.status == health.Unknown {
		return "no verdict yet: " + reason + r.notes(e, t)
	}
	return "held: " + reason + "; last verdict " + e.status.String() + r.notes(e, t)
}

// noVotes returns the reason why no vote counts.
func (r *reasons) noVotes(e *endpoint) string {
	if e.count == 0 {
		return "no checker is assigned"
	}
	for _, s := range r.roster.seatsOf(e) {
		if b := r.counter.believe(e, &s); !b.absent() && b != unreported && b != fellSilent {
			return "no vote is believed"
		}
	}
	return "no checker has reported lately"
}

// notes returns the early evidence, and names the votes that are left out.
func (r *reasons) notes(e *endpoint, t *tally) string {
	if t.up+t.down == t.assigned {
		return r.evidence(e) // every vote counts
	}
	return r.evidence(e) + r.leftOut(e)
}

// evidence names checkers whose HTTP status code differs from the one with which
// their status began: their votes may change soon.
func (r *reasons) evidence(e *endpoint) string {
	var list []string
	seats := r.roster.seatsOf(e)
	for i := range seats {
		s := &seats[i]
		if s.status == noVote || s.code == s.began {
			continue
		}
		list = append(list, fmt.Sprintf("%s gets %s now, %s before", r.roster.checker(s.checker).name, answer(s.code), answer(s.began)))
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	rest := ""
	if len(list) > maxNamed {
		rest = fmt.Sprintf(" and %d more get another now", len(list)-maxNamed)
		list = list[:maxNamed]
	}
	return "; " + strings.Join(list, ", ") + rest
}

func answer(code uint16) string {
	if code == 0 {
		return "no answer"
	}
	return fmt.Sprint(code)
}

// leftOut names the checkers whose votes do not count, by cause.
func (r *reasons) leftOut(e *endpoint) string {
	type cause struct {
		belief belief
		text   string
	}
	type vote struct {
		cause
		checker string
	}
	votes := make([]vote, 0, e.count)
	for _, s := range r.roster.seatsOf(e) {
		if b := r.counter.believe(e, &s); b != believed {
			votes = append(votes, vote{cause{b, r.disbelief(e, &s)}, r.roster.checker(s.checker).name})
		}
	}
	slices.SortFunc(votes, func(x, y vote) int {
		return cmp.Or(cmp.Compare(x.belief, y.belief), cmp.Compare(x.text, y.text), cmp.Compare(x.checker, y.checker))
	})
	var text strings.Builder
	for len(votes) > 0 {
		count := 1
		for count < len(votes) && votes[count].cause == votes[0].cause {
			count++
		}
		separator := "; "
		for _, v := range votes[:min(count, maxNamed)] {
			text.WriteString(separator + v.checker)
			separator = ", "
		}
		if count > maxNamed {
			fmt.Fprintf(&text, " and %d more", count-maxNamed)
		}
		text.WriteString(" not believed: " + votes[0].text)
		votes = votes[count:]
	}
	return text.String()
}

// disbelief adds to describe that a vote was awaited for too long, if it was.
func (r *reasons) disbelief(e *endpoint, s *seat) string {
	b := r.counter.believe(e, s)
	if b.awaited() && e.has(budgetSpent) {
		return r.describe(b, e, s) + health.ForTooLong
	}
	return r.describe(b, e, s)
}

// describe returns the reason why a vote does not count; it is empty if the vote counts.
func (r *reasons) describe(b belief, e *endpoint, s *seat) string {
	switch b {
	case unreported:
		return health.FirstReportAwaited
	case warmingUp:
		return health.WarmingUp
	case fellSilent:
		return health.NextReportAwaited
	case notReported:
		return health.NotReported
	case stale:
		return health.NotHeard
	case undecided:
		return "neither up nor down"
	case doubted:
		return r.doubts.checkerReason(checkerClass{s.checker, r.settings.ofEndpoint(e).class})
	case cutOff:
		p, _ := r.records.cutPath(e, s)
		return r.doubts.pathReason(p)
	case distrusted:
		return r.trust.reason(r.roster.checker(s.checker).name)
	default:
		return ""
	}
}
