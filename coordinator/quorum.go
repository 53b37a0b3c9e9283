package coordinator

import (
	"fmt"
	"time"

	"hdsd/machine"
	"hdsd/notify"
)

// quorum holds the figures that tell whether the remaining checkers have a majority of the planned votes.
type quorum struct {
	connected, lost int // checkers; lost within the last 24 hours
	awaited         int // lost checkers with seats; hdsd awaits their votes
	planned         int // votes on an endpoint, with enough checkers
	short           int // endpoints that have lost most of their planned votes lately
}

func newQuorum(m *machine.Machine) quorum {
	checkers := m.Fleet.Present()
	return quorum{
		connected: checkers.Connected, lost: len(m.Troubles.Lost), awaited: checkers.Seated - checkers.Connected,
		planned: m.Rules.Redundancy(), short: m.Aggregator.Short(),
	}
}

// reason returns the reason for the lack of a majority. It is empty with a majority, and without checkers.
func (q *quorum) reason() string {
	planned := min(q.planned, q.connected+q.lost)
	few := q.lost > 0 && 2*q.connected <= planned
	switch {
	case q.connected == 0:
		return ""
	case few && q.short > 0:
		return fmt.Sprintf("%d of %d checkers left: %s", q.connected, q.connected+q.lost, shortText(q.short))
	case few && q.awaited > 0:
		return fmt.Sprintf("%d of %d checkers left: votes of the others are awaited while hdsd keeps %d of their seats", q.connected, q.connected+q.lost, q.awaited)
	case few:
		return fmt.Sprintf("%d of %d checkers left: their votes alone decide", q.connected, q.connected+q.lost)
	case q.short > 0:
		return "most checkers of some endpoints are lost: " + shortText(q.short)
	}
	return ""
}

func shortText(endpoints int) string {
	word := "endpoints lack"
	if endpoints == 1 {
		word = "endpoint lacks"
	}
	return fmt.Sprintf("%d %s a majority of the planned votes: nothing takes them down until verdict.quorum_hold (10m by default) has passed since the loss", endpoints, word)
}

// checkQuorum reports the lack of a majority: it logs it, sets the metric, and queues a notification.
func (a *alarms) checkQuorum(now time.Time, q quorum) {
	if q == a.quorum {
		return
	}
	a.quorum = q
	a.metrics.short.Set(float64(q.short))
	reason, before := q.reason(), a.tooFew
	a.tooFew.Reason = reason
	if (reason == "") == (before.Reason == "") {
		return
	}
	a.tooFew.Since = now
	ended := reason == ""
	if ended {
		a.log.Warn().Str("event", "too_few_checkers_over").Dur("lasted", now.Sub(before.Since)).Msg("the checkers have a majority of the planned votes again, or none is left")
	} else {
		a.log.Error().Str("event", "too_few_checkers").Int("connected", q.connected).Int("lost", q.lost).Int("endpoints", q.short).Msg(reason)
	}
	a.pending = append(a.pending, notify.Change{Ended: ended, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.TooFewCheckers}, Since: now, Command: "hdsd checkers", Text: reason,
	}})
}
