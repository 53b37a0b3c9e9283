package relay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/relay/message"
)

// marked returns the version of a response with these resources, which have changed or not.
func (l *ledger) marked(version string, changed bool) string {
	if l.key.delta {
		return "" // each resource has its own
	}
	if !changed {
		for s := range l.held.all() {
			if changed = s.change != 0; changed {
				break
			}
		}
	}
	if !changed {
		return version
	}
	l.count++
	return message.Mark(version, l.count)
}

// setDirty notes that the health of a name may have changed, or that it goes out again.
func (l *ledger) setDirty(name string, again bool) {
	if l.dirty == nil {
		l.dirty = map[string]bool{}
	}
	l.dirty[name] = l.dirty[name] || again
	if l.key.kind == assignments {
		l.panels.unsettle(name)
	}
}

// push returns a response of hdsd's own with what has changed; nil: nothing has, or the
// client has yet to answer. warms are the names of assignments that clusters in it wait for.
func (l *ledger) push(s *Server) (d *message.Draft, warms []string) {
	if len(l.dirty) == 0 {
		l.dirty = nil // its memory: after a start it had all names
	}
	switch {
	case len(l.offers) > 0 || l.partial:
		return nil, nil
	case l.key.delta && len(l.doubts.removed) > 0:
		return l.removeAgain(), nil
	case l.dirty == nil:
		return nil, nil
	}
	var names []string
	size, moment := 0, time.Now()
	for name := range l.dirty { // in any order: each response would take a sort of all
		before := l.held.get(name)
		if before == nil {
			if !l.dirty[name] || l.begun && l.claims.left == 0 { // what the client claims to have is yet to come
				delete(l.dirty, name)
			}
			continue
		}
		now, inDoubt := before.item.render(s), l.key.splits() && l.doubts.has(name)
		same := now.sent.change == before.change && !l.dirty[name] && !(inDoubt && l.doubts.differ(s, name))
		if same || before.item.stale(moment) { // that ends for the client, too
			delete(l.dirty, name)
			continue
		}
		if size += len(now.wire); len(names) > 0 && l.key.splits() && (size > maxPush || inDoubt) {
			break
		}
		names, warms = append(names, name), before.item.body.warms(warms)
		if inDoubt { // alone, so that the answer says whether the client has it
			break
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	if slices.Sort(names); !l.key.splits() {
		names = l.order
		clear(l.dirty)
	}
	return l.build(s, names, moment), warms
}

// own makes an offer of hdsd's.
func (l *ledger) own() *offer {
	l.count++
	return &offer{nonce: fmt.Sprintf("%s%d", l.tag, l.count), own: true}
}

// removeAgain removes what the client may have kept because it refused the response that
// removed it. So it is certain that nobody has to check that any more.
func (l *ledger) removeAgain() *message.Draft {
	o := l.own()
	o.gone, l.doubts.removed = l.doubts.removed, nil
	l.offer(o)
	return message.Build(true, l.key.kind.typeURL(), o.nonce, "", nil, slices.Sorted(maps.Keys(o.gone)))
}

func (l *ledger) build(s *Server, names []string, moment time.Time) *message.Draft {
	o := l.own()
	o.brings = make([]*sent, 0, len(names))
	all := make([][]byte, 0, len(names))
	for _, name := range names {
		before := l.held.get(name)
		if before == nil || before.item.stale(moment) {
			continue
		}
		now := before.item.render(s)
		all = append(all, before.item.own(now, moment))
		o.brings = append(o.brings, hold(now.sent))
		l.put(now.sent)
	}
	l.offer(o)
	return message.Build(l.key.delta, l.key.kind.typeURL(), o.nonce, l.marked(l.version, false), all, nil)
}

// push returns hdsd's next response of its own, clusters first; nil: there is none, or no room yet.
// The response takes the room; if there is nothing to push, push gives the room back.
func (st *stream) push(room *pushRoom) (*encoded, error) {
	end, ok := st.pushStart()
	if !ok {
		return nil, nil
	}
	defer end()
	d, ready := st.pushDraft(room)
	switch {
	case !ready:
		return nil, nil
	case d == nil:
		room.drop()
		return nil, nil
	}
	return st.encode(d, room.take())
}

// pushStart waits until the stream may make a response of hdsd's own, and locks mu; false: it has
// ended. The lock may be that of a large request, so it does not wait for the lock in its turn.
func (st *stream) pushStart() (end func(), ok bool) {
	for {
		if end, ok = st.pushTurn(); !ok || st.mu.TryLock() {
			return end, ok
		}
		end()
		st.mu.Lock()
		st.mu.Unlock() //nolint:staticcheck // it waits until the request is worked at
	}
}

// pushDraft returns hdsd's next response of its own, not yet encoded; nil: there is none. Without
// room for the response, it is not ready. The caller has locked mu, and pushDraft unlocks it.
func (st *stream) pushDraft(room *pushRoom) (d *message.Draft, ready bool) {
	defer st.mu.Unlock()
	st.touched()
	if l := st.ledgers[assignments]; l != nil {
		l.resettle(st.server) // also while it waits for room, or for an answer
	}
	if !room.ready(st.pushSize()) {
		return nil, false
	}
	for _, l := range st.ledgers {
		if l == nil {
			continue
		}
		d, warms := l.push(st.server)
		if d != nil {
			st.warm(warms)
			st.server.metrics.flips.Inc()
			return d, true
		}
	}
	return nil, true
}
