package aggregate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hdsd/health"
)

// observations lists the latest votes, by checker.
func (a *Aggregator) observations(e *endpoint) []health.Observation {
	list := make([]health.Observation, 0, e.count)
	seats := a.seats.of(e)
	for i := range seats {
		s := &seats[i]
		if s.status == noVote {
			continue
		}
		c := &a.checkers.all[s.checker]
		list = append(list, health.Observation{
			Checker: c.name, Status: s.status, HTTPStatusCode: s.code, Time: c.heard,
			Disbelieved: a.disbelief(e, s),
		})
	}
	slices.SortFunc(list, func(x, y health.Observation) int { return cmp.Compare(x.Checker, y.Checker) })
	return list
}

// explain says in words why the endpoint's verdict is what it is.
func (a *Aggregator) explain(id health.EndpointID, e *endpoint, t *tally) string {
	rule := &a.policyOf(e).Rule
	status, how := rule.decide(t, e.status)
	why := ""
	switch {
	case e.flags&(hesitating|settling) != 0 && how == decided && status.Up() && e.status.Down():
		why = t.sides(rule) + ", though the latest probes failed; whether more do shows soon"
	case e.flags&hesitating != 0 && !t.inside:
		why = t.sides(rule) + ", alone; whether it goes on saying so shows soon"
	case e.flags&hesitating != 0:
		why = t.sides(rule) + ", but a checker in its own zone says up; whether the way there is cut shows soon"
	case e.flags&restrained != 0 && !e.status.Down():
		why = t.sides(rule) + ", but so they do of more than half of the cluster at once, and zones do not agree; it waits until " + a.waitsUntil(e)
	case e.flags&flapping != 0 && a.flaps[id].held:
		why = t.sides(rule) + ", but " + a.steadyAt(id)
	case e.flags&settling != 0 && how == decided && sideOf(status) != sideOf(e.status):
		why = t.sides(rule) + ", but a checker in its own zone is awaited"
	case how == decided:
		return t.sides(rule) + a.besides(e, t)
	case how == lapsed:
		return fmt.Sprintf("%s: by configuration %s then", a.nobody(e), e.status) + a.besides(e, t)
	case how == tied:
		why = t.tie(rule)
	case how == outwaited:
		why = fmt.Sprintf("%s, %d awaited", t.sides(rule), t.awaited)
	default:
		why = a.nobody(e)
	}
	if e.since == never && e.status == health.Unknown {
		return "no verdict yet: " + why + a.besides(e, t)
	}
	return "held: " + why + "; last verdict " + e.status.String() + a.besides(e, t)
}

// tie says that the votes come to neither side.
func (t *tally) tie(r *Rule) string {
	switch {
	case r.Kind == AtLeast:
		return fmt.Sprintf("%d down, none up; %s", t.down, r)
	case r.Kind == Score && t.down > t.up:
		return fmt.Sprintf("%d down, %d up; %s", t.down, t.up, t.scored())
	}
	text := fmt.Sprintf("a tie, %d up and %d down", t.up, t.down)
	if r.Kind == ZoneMajority {
		text += ", as many zones on each side"
	}
	return text
}

// sides says how many of those who count are on the side that won.
func (t *tally) sides(r *Rule) string {
	side, won, word := r.side(t, neither), t.up, "up"
	if side == down {
		won, word = t.down, "down"
	}
	what := t.name(side).String()
	if t.votes[t.name(side)] != won {
		what = fmt.Sprintf("%s (%s)", word, t.names(side))
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
	text := strconv.Itoa(int(won)) + " of " + strconv.Itoa(int(of)) + " " + adjective + noun + " " + verb + " " + what
	if rule := r.String(); rule != "" {
		text += "; " + rule
	}
	if r.Kind == Score && side == down {
		text += "; " + t.scored()
	}
	return text
}

// names says how many votes of a side there are by each of its names.
func (t *tally) names(of side) string {
	var names []string
	for i, n := range t.votes {
		if s := health.Status(i); n > 0 && sideOf(s) == of {
			names = append(names, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(names, ", ")
}

// nobody says why no vote counts.
func (a *Aggregator) nobody(e *endpoint) string {
	if e.count == 0 {
		return "no checker is assigned"
	}
	for _, s := range a.seats.of(e) {
		if b := a.believe(e, &s); !b.absent() && b != unreported && b != gone {
			return "no vote is believed"
		}
	}
	return "no checker has reported lately"
}

// named is how many checkers a reason names for one cause.
const named = 5

// besides tells what else is to be known of the votes.
func (a *Aggregator) besides(e *endpoint, t *tally) string {
	if t.up+t.down == t.assigned {
		return a.evidence(e) // nobody is left out
	}
	return a.evidence(e) + a.leftOut(e)
}

// evidence names those who get another HTTP status code than when they began
// to say what they say: their word may follow.
func (a *Aggregator) evidence(e *endpoint) string {
	var list []string
	seats := a.seats.of(e)
	for i := range seats {
		s := &seats[i]
		if s.status == noVote || s.code == s.began {
			continue
		}
		list = append(list, fmt.Sprintf("%s gets %s now, %s before", a.checkers.all[s.checker].name, answer(s.code), answer(s.began)))
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	more := ""
	if len(list) > named {
		more = fmt.Sprintf(" and %d more get another now", len(list)-named)
		list = list[:named]
	}
	return "; " + strings.Join(list, ", ") + more
}

func answer(code uint16) string {
	if code == 0 {
		return "no answer"
	}
	return fmt.Sprint(code)
}

// leftOut names those whose votes do not count, by cause.
func (a *Aggregator) leftOut(e *endpoint) string {
	type cause struct {
		belief belief
		text   string
	}
	names := map[cause][]string{}
	for _, s := range a.seats.of(e) {
		if b := a.believe(e, &s); b != believed {
			c := cause{b, a.disbelief(e, &s)}
			names[c] = append(names[c], a.checkers.all[s.checker].name)
		}
	}
	causes := slices.SortedFunc(maps.Keys(names), func(x, y cause) int {
		return cmp.Or(cmp.Compare(x.belief, y.belief), cmp.Compare(x.text, y.text))
	})
	var text strings.Builder
	for _, c := range causes {
		list := slices.Sorted(slices.Values(names[c]))
		more := ""
		if len(list) > named {
			more = fmt.Sprintf(" and %d more", len(list)-named)
			list = list[:named]
		}
		fmt.Fprintf(&text, "; %s%s not believed: %s", strings.Join(list, ", "), more, c.text)
	}
	return text.String()
}

// disbelief says why a vote does not count; empty where it does.
func (a *Aggregator) disbelief(e *endpoint, s *seat) string {
	b := a.believe(e, s)
	if b.awaited() && e.flags&exhausted != 0 {
		return a.describe(b, e, s) + " for too long"
	}
	return a.describe(b, e, s)
}

// describe says in words what a vote is worth.
func (a *Aggregator) describe(b belief, e *endpoint, s *seat) string {
	c := &a.checkers.all[s.checker]
	switch b {
	case unreported:
		return "first report awaited"
	case warmingUp:
		return "warming up"
	case gone:
		return "next report awaited"
	case mute:
		return "does not report it"
	case outdated:
		return "not heard lately"
	case undecided:
		return "neither up nor down"
	case doubted:
		class := a.policyOf(e).class
		d := a.doubt(class)
		return c.in(class).record.aboutChecker(&d)
	case cutOff:
		p, _ := a.cutBy(e, s)
		return a.aboutPath(p)
	case refused:
		return a.words[c.name].text()
	default:
		return ""
	}
}
