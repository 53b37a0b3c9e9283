package xds

import (
	"slices"
	"time"
)

// scope is the part of a table's names that a channel requests. In the state of the world, a
// server may answer only when it has every name of a request. So names used only by clusters of
// other sources never share a request with the source's own.
type scope uint8

const (
	everyName    scope = iota
	ownNames           // used by clusters of this source
	foreignNames       // used only by clusters of other sources
)

// covers reports whether a resource belongs to a scope.
func (t *table) covers(s scope, e *entry) bool {
	lent := len(e.askers) == 1 && e.askers[others]
	return t.subscribed(e) && (s == everyName || lent == (s == foreignNames))
}

// names returns the subscribed names of a scope.
func (t *table) names(s scope) []string {
	names := make([]string, 0, len(t.entries))
	for name, e := range t.entries {
		if t.covers(s, e) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// asks reports whether a scope has names to subscribe to.
func (t *table) asks(s scope) bool {
	if t.wildcard() {
		return true
	}
	for _, e := range t.entries {
		if t.covers(s, e) {
			return true
		}
	}
	return false
}

// complete reports whether every resource of a scope is known.
func (t *table) complete(s scope) bool {
	for _, e := range t.entries {
		if e.good == nil && t.covers(s, e) {
			return false
		}
	}
	return true
}

// talkOf returns the conversation about a scope of a table.
func (s *Source) talkOf(t *table, part scope) *talk {
	if t == s.assignments && part == foreignNames {
		return &s.foreign
	}
	return &t.talk
}

// shown returns the conversation that stands for a table: that about the source's own names, if
// there are any.
func (s *Source) shown(t *table) *talk {
	if t == s.assignments && !s.settings.delta && !t.asks(ownNames) && t.asks(foreignNames) {
		return &s.foreign
	}
	return &t.talk
}

// toldAssignments reports whether a server has answered about assignments.
func (s *Source) toldAssignments() bool { return s.assignments.talk.heard || s.foreign.heard }

// wake signals the channels of a table that its subscriptions may have changed.
func (s *Source) wake(t *table) {
	for _, c := range s.channels {
		if slices.Contains(c.tables, t) {
			notify(c.wake)
		}
	}
}

// Bounds of the time without an answer to new names. After reaskAfter, the names are
// asked for once more with an empty version, because some servers compare nothing but
// versions. After initial_fetch_timeout (silentAfter if that is 0), the silence is told.
const (
	reaskAfter  = 5 * time.Second
	silentAfter = defaultFetchTimeout
)

// question is an unanswered request on a stream in the state of the world.
type question struct {
	requestedAt time.Time // when the first of the names was added; zero: all are answered
	added       []string
	repeated    bool // it was asked once more
	noticed     bool // the silence was reported
}

// add records that names were added to the subscription.
func (q *question) add(names []string, now time.Time) {
	if len(names) == 0 {
		return
	}
	if q.requestedAt.IsZero() {
		q.requestedAt = now
	}
	q.added = append(q.added, names...)
}

// due returns the time until the silence needs an action; negative is never.
func (q *question) due(now time.Time, version string, limit time.Duration) time.Duration {
	switch {
	case q.requestedAt.IsZero() || q.noticed:
		return never
	case !q.repeated && version != "" && reaskAfter < limit:
		return max(0, q.requestedAt.Add(reaskAfter).Sub(now))
	default:
		return max(0, q.requestedAt.Add(limit).Sub(now))
	}
}
