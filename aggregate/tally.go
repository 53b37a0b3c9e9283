package aggregate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hdsd/health"
)

// side is the side of one vote, or the side that wins.
type side int8

const (
	neither side = iota
	up
	down
)

func sideOf(s health.Status) side {
	switch {
	case s.Up():
		return up
	case s.Down():
		return down
	default:
		return neither
	}
}

// count holds the number of votes on each side, of awaited votes, and of those that are
// planned and lost.
type count struct{ up, down, awaited, lost uint16 }

// one returns the count of a single vote.
func one(on side) count {
	switch on {
	case up:
		return count{up: 1}
	case down:
		return count{down: 1}
	default:
		return count{}
	}
}

func (c *count) add(more count) {
	c.up += more.up
	c.down += more.down
	c.awaited += more.awaited
	c.lost += more.lost
}

// with returns the count with the awaited votes added to a side.
func (c count) with(awaited side) count {
	switch awaited {
	case up:
		c.up += c.awaited
	case down:
		c.down += c.awaited
	}
	return c
}

// found returns the count as if the lost votes were up.
func (c count) found() count {
	c.up += c.lost
	return c
}

func (c count) majority() side {
	switch {
	case c.up > c.down:
		return up
	case c.down > c.up:
		return down
	default:
		return neither
	}
}

// zoneCount counts the votes of one zone's checkers.
type zoneCount struct {
	zone uint32
	count
}

// tally is the input of a rule.
type tally struct {
	count                                // includes the absent as awaited while the endpoint has awaitsAbsent
	votes    [health.Degraded + 1]uint16 // votes that count, by status
	warming  uint16                      // downs that may count when their pairs have warmed up
	absent   uint16
	assigned uint16
	overCut  uint16      // downs that count although their path is cut
	holds    bool        // the last verdict holds when no vote counts, whatever the rule
	inside   bool        // a checker that speaks for the endpoint's own zone says up, is awaited or is doubted, and no other there says down
	muted    bool        // only a checker there that is doubted says down, and nobody there is heard beside it
	answered bool        // a down that counts has an answer, so its checker reached the endpoint
	firm     bool        // an up that counts is not about to become a down
	score    int         // the sum of the runs of downs, if the rule needs it
	longest  int         // the longest run of downs
	zones    []zoneCount // if the rule needs them
}

// addZone adds votes to the count of a zone.
func (t *tally) addZone(zone uint32, more count) {
	for i := range t.zones {
		if t.zones[i].zone == zone {
			t.zones[i].add(more)
			return
		}
	}
	t.zones = append(t.zones, zoneCount{zone, more})
}

// addRun adds one vote's run of downs.
func (t *tally) addRun(length int) {
	t.score += min(length, longestRun)
	t.longest = max(t.longest, length)
}

// found returns the tally as if the lost votes were up.
func (t *tally) found() *tally {
	all := *t
	all.count, all.zones = t.count.found(), slices.Clone(t.zones)
	for i := range all.zones {
		all.zones[i].count = all.zones[i].found()
	}
	return &all
}

// leansOnCut reports whether the downs that need no cut path are no majority.
func (t *tally) leansOnCut() bool { return t.overCut > 0 && t.down-t.overCut <= t.up }

// expectNobody drops the awaited votes.
func (t *tally) expectNobody(e *endpoint) {
	t.awaited, t.holds = 0, e.since == never
}

// scoreSuffices reports whether the score takes the endpoint down if the awaited
// votes are on the given side.
func (t *tally) scoreSuffices(awaited side) bool {
	voters, score := t.up+t.down+t.awaited, t.score
	if voters == 1 {
		return t.longest >= aloneTakes
	}
	if awaited == down {
		score += longestRun * int(t.awaited)
	}
	return score >= neededScore(voters)
}

// name returns the most frequent status on a side, or the worst of the most frequent.
func (t *tally) name(of side) health.Status {
	worse, better := health.Degraded, health.Healthy
	if of == down {
		worse, better = health.Unhealthy, health.Timeout
	}
	if t.votes[worse] >= t.votes[better] {
		return worse
	}
	return better
}

// names says how many votes on a side have each status.
func (t *tally) names(of side) string {
	var names []string
	for i, n := range t.votes {
		if s := health.Status(i); n > 0 && sideOf(s) == of {
			names = append(names, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(names, ", ")
}

// sides says how many votes that count are on the winning side.
func (t *tally) sides(r *Rule) string { return string(t.appendSides(nil, r)) }

// appendSides appends what sides says.
func (t *tally) appendSides(to []byte, r *Rule) []byte {
	side, won, word := r.side(t, neither), t.up, "up"
	if side == down {
		won, word = t.down, "down"
	}
	of := t.up + t.down
	to = append(strconv.AppendUint(to, uint64(won), 10), " of "...)
	to = append(strconv.AppendUint(to, uint64(of), 10), ' ')
	if of < t.assigned {
		to = append(to, "believed "...)
	}
	if of == 1 {
		to = append(to, "checker "...)
	} else {
		to = append(to, "checkers "...)
	}
	if won == 1 {
		to = append(to, "says "...)
	} else {
		to = append(to, "say "...)
	}
	if name := t.name(side); t.votes[name] == won {
		to = append(to, name.String()...)
	} else {
		to = fmt.Appendf(to, "%s (%s)", word, t.names(side))
	}
	if rule := r.String(); rule != "" {
		to = append(append(to, "; "...), rule...)
	}
	if r.Kind == Score && side == down {
		to = append(append(to, "; "...), t.scored()...)
	}
	return to
}

// lonely says that one vote decides where more are planned.
func (t *tally) lonely(r *Rule) string {
	if r.Votes < 2 || t.up+t.down != 1 {
		return ""
	}
	return fmt.Sprintf("; %d are planned", r.Votes)
}

// tie says that neither side wins.
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

// scored says how high the score is.
func (t *tally) scored() string {
	if t.up+t.down == 1 {
		return fmt.Sprintf("for %d rounds, and one alone takes %d", t.longest, aloneTakes)
	}
	return fmt.Sprintf("score %d, and down takes %d", t.score, neededScore(t.up+t.down))
}
