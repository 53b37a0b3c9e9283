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

// count holds the number of votes on each side, of awaited votes, and of lost planned votes.
type count struct{ up, down, awaited, lost uint16 }

// single returns the count of a single vote.
func single(s side) count {
	switch s {
	case up:
		return count{up: 1}
	case down:
		return count{down: 1}
	default:
		return count{}
	}
}

func (c *count) add(other count) {
	c.up += other.up
	c.down += other.down
	c.awaited += other.awaited
	c.lost += other.lost
}

// withAwaited returns the count with the awaited votes added to a side.
func (c count) withAwaited(s side) count {
	switch s {
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
	muted    bool        // only a doubted checker there says down, and no other there is heard
	answered bool        // a down that counts has an answer, so its checker reached the endpoint
	firm     bool        // an up that counts is not about to become a down
	score    int         // the sum of the runs of downs, if the rule needs it
	longest  int         // the longest run of downs
	zones    []zoneCount // if the rule needs them
}

// addZone adds votes to the count of a zone.
func (t *tally) addZone(zone uint32, votes count) {
	for i := range t.zones {
		if t.zones[i].zone == zone {
			t.zones[i].add(votes)
			return
		}
	}
	t.zones = append(t.zones, zoneCount{zone, votes})
}

// addRun adds one vote's run of downs.
func (t *tally) addRun(length int) {
	t.score += min(length, longestRun)
	t.longest = max(t.longest, length)
}

// found returns the tally as if the lost votes were up.
func (t *tally) found() *tally {
	result := *t
	result.count, result.zones = t.count.found(), slices.Clone(t.zones)
	for i := range result.zones {
		result.zones[i].count = result.zones[i].found()
	}
	return &result
}

// leansOnCut reports whether the downs that need no cut path are no majority.
func (t *tally) leansOnCut() bool { return t.overCut > 0 && t.down-t.overCut <= t.up }

// expectNobody drops the awaited votes.
func (t *tally) expectNobody(e *endpoint) {
	t.awaited, t.holds = 0, e.verdictTime == never
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
func (t *tally) name(onSide side) health.Status {
	worse, better := health.Degraded, health.Healthy
	if onSide == down {
		worse, better = health.Unhealthy, health.Timeout
	}
	if t.votes[worse] >= t.votes[better] {
		return worse
	}
	return better
}

// names lists the number of votes on a side by status.
func (t *tally) names(onSide side) string {
	var names []string
	for i, n := range t.votes {
		if s := health.Status(i); n > 0 && sideOf(s) == onSide {
			names = append(names, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(names, ", ")
}

// sides describes the votes that count on the winning side.
func (t *tally) sides(r *Rule) string { return string(t.appendSides(nil, r)) }

// appendSides appends the text of sides.
func (t *tally) appendSides(text []byte, r *Rule) []byte {
	side, won, word := r.side(t, neither), t.up, "up"
	if side == down {
		won, word = t.down, "down"
	}
	total := t.up + t.down
	text = append(strconv.AppendUint(text, uint64(won), 10), " of "...)
	text = append(strconv.AppendUint(text, uint64(total), 10), ' ')
	if total < t.assigned {
		text = append(text, "believed "...)
	}
	if total == 1 {
		text = append(text, "checker "...)
	} else {
		text = append(text, "checkers "...)
	}
	if won == 1 {
		text = append(text, "says "...)
	} else {
		text = append(text, "say "...)
	}
	if name := t.name(side); t.votes[name] == won {
		text = append(text, name.String()...)
	} else {
		text = fmt.Appendf(text, "%s (%s)", word, t.names(side))
	}
	if rule := r.String(); rule != "" {
		text = append(append(text, "; "...), rule...)
	}
	if r.Kind == Score && side == down {
		text = append(append(text, "; "...), t.scored()...)
	}
	return text
}

// lonely returns a note if a single vote decides where more are planned.
func (t *tally) lonely(r *Rule) string {
	if r.Votes < 2 || t.up+t.down != 1 {
		return ""
	}
	return fmt.Sprintf("; %d are planned", r.Votes)
}

// tie returns the reason for a tie.
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

// scored describes the score.
func (t *tally) scored() string {
	if t.up+t.down == 1 {
		return fmt.Sprintf("for %d rounds, and one alone takes %d", t.longest, aloneTakes)
	}
	return fmt.Sprintf("score %d, and down takes %d", t.score, neededScore(t.up+t.down))
}
