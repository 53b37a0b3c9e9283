package aggregate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hdsd/health"
)

// maxNamed is how many checkers a reason names for one cause at most.
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

	votes repeated[health.Observation]
	said  repeatedText
}

// observations lists the latest votes, by checker. Nobody may change the list.
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
	rule := &r.settings.of(e).Rule
	status, how := rule.decide(t, e.status)
	why := ""
	switch {
	case e.has(awaitsConfirmation|awaitsAbsent) && how == decided && status.Up() && e.status.Down():
		why = t.sides(rule) + ", though the latest probes failed; whether more do shows soon"
	case e.has(awaitsConfirmation) && !t.inside && t.leansOnCut():
		why = t.sides(rule) + ", some over a path that is doubted; whether its own zone goes on agreeing shows soon"
	case e.has(awaitsConfirmation) && t.muted:
		why = t.sides(rule) + ", but no checker in its own zone is believed; whether the way there is cut shows soon"
	case e.has(awaitsConfirmation) && !t.inside:
		why = t.sides(rule) + ", alone; whether it goes on saying so shows soon"
	case e.has(awaitsConfirmation):
		why = t.sides(rule) + ", but a checker in its own zone says up; whether the way there is cut shows soon"
	case e.has(isHeldBack) && !e.status.Down():
		why = t.sides(rule) + ", but so they do of more than half of the cluster at once, and zones do not agree; it waits until " + r.mass.until(e.cluster)
	case r.damping.holds(id, e):
		why = t.sides(rule) + ", but " + r.damping.reason(id)
	case e.has(awaitsAbsent) && how == decided && sideOf(status) != sideOf(e.status):
		why = t.sides(rule) + ", but a checker in its own zone is awaited"
	case e.has(awaitsName) && how == decided:
		why = t.sides(rule) + ", down either way; whether that lasts shows soon"
	case how == decided:
		return r.said.share(t.appendSides(r.said.room[:0], rule)) + t.lonely(rule) + r.notes(e, t)
	case how == outnumbered:
		why = fmt.Sprintf("%s, but %d of %d planned are lost, and no down counts without them for %s", t.sides(rule), t.lost, rule.Votes, rule.QuorumHold)
	case how == lapsed:
		return fmt.Sprintf("%s: by configuration %s then", r.noVotes(e), e.status) + r.notes(e, t)
	case how == tied:
		why = t.tie(rule)
	case how == unsettled:
		why = fmt.Sprintf("%s, %d awaited", t.sides(rule), t.awaited)
	default:
		why = r.noVotes(e)
	}
	if e.since == never && e.status == health.Unknown {
		return "no verdict yet: " + why + r.notes(e, t)
	}
	return "held: " + why + "; last verdict " + e.status.String() + r.notes(e, t)
}

// noVotes says why no vote counts.
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
	more := ""
	if len(list) > maxNamed {
		more = fmt.Sprintf(" and %d more get another now", len(list)-maxNamed)
		list = list[:maxNamed]
	}
	return "; " + strings.Join(list, ", ") + more
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
		same := 1
		for same < len(votes) && votes[same].cause == votes[0].cause {
			same++
		}
		separator := "; "
		for _, v := range votes[:min(same, maxNamed)] {
			text.WriteString(separator + v.checker)
			separator = ", "
		}
		if same > maxNamed {
			fmt.Fprintf(&text, " and %d more", same-maxNamed)
		}
		text.WriteString(" not believed: " + votes[0].text)
		votes = votes[same:]
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

// describe says why a vote does not count; it is empty if the vote counts.
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
		return r.doubts.checkerReason(checkerClass{s.checker, r.settings.of(e).class})
	case cutOff:
		p, _ := r.records.cutPath(e, s)
		return r.doubts.pathReason(p)
	case distrusted:
		return r.trust.reason(r.roster.checker(s.checker).name)
	default:
		return ""
	}
}
