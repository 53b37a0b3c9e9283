package aggregate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hdsd/health"
)

// observations lists the latest votes, by checker.
func (a *Aggregator) observations(e *endpoint) []health.Observation {
	list := make([]health.Observation, 0, e.count)
	for _, s := range a.seats.of(e) {
		if s.status == noVote {
			continue
		}
		c := &a.checkers.all[s.checker]
		list = append(list, health.Observation{
			Checker: c.name, Status: s.status, HTTPStatusCode: s.code, Time: c.heard,
			Disbelieved: a.believe(&s).String(),
		})
	}
	slices.SortFunc(list, func(x, y health.Observation) int { return cmp.Compare(x.Checker, y.Checker) })
	return list
}

// explain says in words why the endpoint's verdict is what it is.
func (a *Aggregator) explain(e *endpoint) string {
	var t tally
	a.tally(e, &t)
	_, how := majority(&t, e.status)
	if how == decided {
		return t.sides() + a.leftOut(e)
	}
	why := ""
	switch how {
	case tied:
		why = fmt.Sprintf("a tie, %d up and %d down", t.up, t.down)
	case outwaited:
		why = fmt.Sprintf("%s, %d awaited", t.sides(), t.awaited)
	default:
		why = a.nobody(e)
	}
	if e.since == never && e.status == health.Unknown {
		return "no verdict yet: " + why + a.leftOut(e)
	}
	return "held: " + why + "; last verdict " + e.status.String() + a.leftOut(e)
}

// sides says how many of those who count are on the side that won.
func (t *tally) sides() string {
	won, side := t.up, health.Status.Up
	word := "up"
	if t.down > t.up {
		won, side, word = t.down, health.Status.Down, "down"
	}
	var names []string
	for i, n := range t.votes {
		if s := health.Status(i); n > 0 && side(s) {
			names = append(names, fmt.Sprintf("%d %s", n, s))
		}
	}
	what := t.name().String()
	if len(names) > 1 {
		what = fmt.Sprintf("%s (%s)", word, strings.Join(names, ", "))
	}
	of := t.up + t.down
	adjective, noun, verb := "", "checkers", "say"
	if of < t.assigned {
		adjective = "believed "
	}
	if of == 1 {
		noun = "checker"
	}
	if won == 1 {
		verb = "says"
	}
	return fmt.Sprintf("%d of %d %s%s %s %s", won, of, adjective, noun, verb, what)
}

// nobody says why no vote counts.
func (a *Aggregator) nobody(e *endpoint) string {
	if e.count == 0 {
		return "no checker is assigned"
	}
	for _, s := range a.seats.of(e) {
		if b := a.believe(&s); b == warmingUp || b == undecided {
			return "no vote is believed"
		}
	}
	return "no checker has reported lately"
}

// named is how many checkers a reason names for one cause.
const named = 5

// leftOut names those whose votes do not count, by cause.
func (a *Aggregator) leftOut(e *endpoint) string {
	var names [undecided + 1][]string
	for _, s := range a.seats.of(e) {
		b := a.believe(&s)
		names[b] = append(names[b], a.checkers.all[s.checker].name)
	}
	var text strings.Builder
	for b := believed + 1; b <= undecided; b++ {
		list := names[b]
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		more := ""
		if len(list) > named {
			more = fmt.Sprintf(" and %d more", len(list)-named)
			list = list[:named]
		}
		fmt.Fprintf(&text, "; %s%s not believed: %s", strings.Join(list, ", "), more, b)
	}
	return text.String()
}
