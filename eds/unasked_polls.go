package eds

import (
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// notePoll remembers a poll. Who polls clusters owes their assignments as those
// with streams do, which is looked at with its polls.
func (s *Server) notePoll(by string, m *discoveryv3.DiscoveryRequest, f *fetched, now time.Time) {
	s.pollers.note(by, m, f, now)
	node := brief(m.GetNode().GetId())
	if f.table == s.assignments {
		s.asksFor(node)
		return
	}
	key := pollKey{pollerKey{node, by}, f.list()}
	taken := s.pollers.toLookAt(key, now)
	if taken == nil {
		return
	}
	count, asks := 0, s.askedBy(node, nil)
	for _, slot := range s.find(s.clusters, taken, "").slots {
		if f := slot.latest(); f != nil && f.checked && !asks.has(f.service) {
			count++
		}
	}
	s.tellUnasked(node, s.pollers.setUnasked(key, count), count)
}

// toLookAt gives the clusters that a client has by its own word, once it has had
// them long enough, and again while it owes something; else nil.
func (l *pollers) toLookAt(key pollKey, now time.Time) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.polls[key]
	if e == nil {
		return nil
	}
	p := e.Value.(*polling) //nolint:forcetypeassert // nothing else is in the list
	if p.accepted == nil || now.Sub(p.took) < askWithin || p.looked.After(p.took) && (p.unasked == 0 || now.Sub(p.looked) < askWithin) {
		return nil
	}
	p.looked = now
	return p.accepted.keys
}

// setUnasked notes what a client owes, and gives what it owed before.
func (l *pollers) setUnasked(key pollKey, count int) (before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.polls[key]; e != nil {
		p := e.Value.(*polling) //nolint:forcetypeassert // nothing else is in the list
		before, p.unasked = p.unasked, count
		l.unasked += count - before
	}
	return before
}

// notAsked is how many assignments all who poll owe.
func (l *pollers) notAsked(now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	return l.unasked
}

// addAsked adds what a node polls. Where polls were forgotten for lack of room,
// a node that polls anything may poll everything.
func (l *pollers) addAsked(to *askedNames, node string, t *table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := !l.crowded.IsZero() && time.Since(l.crowded) < pollStays
	for e := l.order.Front(); e != nil; e = e.Next() {
		p := e.Value.(*polling) //nolint:forcetypeassert // nothing else is in the list
		if p.key.id != node || p.key.list.table != t {
			continue
		}
		to.all = to.all || p.key.list.all || crowded
		for _, key := range p.given.keys {
			name, _, _ := strings.Cut(key, separator)
			to.named[name] = struct{}{}
		}
	}
}
