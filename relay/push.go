package relay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/relay/message"
)

// markVersion returns the version of a response: with a mark if a resource of it, or of the client, is
// changed. A delta response has none: each resource has its own.
func (l *ledger) markVersion(version string, changed bool) string {
	if l.key.delta {
		return ""
	}
	if !changed {
		for s := range l.holdings.all() {
			if changed = s.change != 0; changed {
				break
			}
		}
	}
	if !changed {
		return version
	}
	l.ownCount++
	return message.Mark(version, l.ownCount)
}

// setDirty marks a name whose health may have changed, or that has to go out again.
func (l *ledger) setDirty(name string, always bool) {
	if l.dirty == nil {
		l.dirty = map[string]bool{}
	}
	l.dirty[name] = l.dirty[name] || always
	if l.key.kind == assignments {
		l.panels.unsettle(name)
	}
}

// push returns a response of hdsd's own with the changed resources; nil: none has changed, or the client
// has yet to answer. warms are the names of the assignments that clusters in it wait for.
func (l *ledger) push(s *Server) (d *message.Draft, warms []string) {
	if len(l.dirty) == 0 {
		l.dirty = nil // frees memory: after a start it had all names
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
	for name := range l.dirty { // in any order: a sort of all names for each response takes long
		previous := l.holdings.get(name)
		if previous == nil {
			if !l.dirty[name] || l.requested && l.claims.unsettled == 0 { // else the control plane may still send a claimed one
				delete(l.dirty, name)
			}
			continue
		}
		next, inDoubt := previous.item.render(s), l.key.splits() && l.doubts.open(name)
		same := next.sent.change == previous.change && !l.dirty[name] && !(inDoubt && l.doubts.healthDiffers(s, name))
		if same || previous.item.stale(moment) { // a stale resource ends for the client, too
			delete(l.dirty, name)
			continue
		}
		if size += len(next.wire); len(names) > 0 && l.key.splits() && (size > maxPush || inDoubt) {
			break
		}
		names, warms = append(names, name), previous.item.body.warms(warms)
		if inDoubt { // it goes out alone, so that the answer says whether the client has it
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

// newOffer makes an offer of hdsd's own.
func (l *ledger) newOffer() *offer {
	l.ownCount++
	return &offer{nonce: fmt.Sprintf("%s%d", l.noncePrefix, l.ownCount), own: true}
}

// removeAgain removes the resources of refused removals once more: the client may have kept them. Once it
// accepts, hdsd does not have to check them any more.
func (l *ledger) removeAgain() *message.Draft {
	o := l.newOffer()
	o.removed, l.doubts.removed = l.doubts.removed, nil
	l.offer(o)
	return message.Build(true, l.key.kind.typeURL(), o.nonce, "", nil, slices.Sorted(maps.Keys(o.removed)))
}

func (l *ledger) build(s *Server, names []string, moment time.Time) *message.Draft {
	o := l.newOffer()
	o.resources = make([]*delivery, 0, len(names))
	resources := make([][]byte, 0, len(names))
	for _, name := range names {
		previous := l.holdings.get(name)
		if previous == nil || previous.item.stale(moment) {
			continue
		}
		next := previous.item.render(s)
		resources = append(resources, previous.item.ownWire(next, moment))
		o.resources = append(o.resources, retain(next.sent))
		l.put(next.sent)
	}
	l.offer(o)
	return message.Build(l.key.delta, l.key.kind.typeURL(), o.nonce, l.markVersion(l.version, false), resources, nil)
}

// push returns hdsd's next response of its own, clusters first; nil: there is none, or no room yet. The
// response takes the room. If there is none, push gives the room back.
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

// pushStart waits until the stream may make a response of hdsd's own, and locks mu; false: the stream has
// ended. A large request may have the lock, so pushStart does not wait for the lock in its turn.
func (st *stream) pushStart() (end func(), ok bool) {
	for {
		if end, ok = st.pushTurn(); !ok || st.mu.TryLock() {
			return end, ok
		}
		end()
		st.mu.Lock()
		st.mu.Unlock() //nolint:staticcheck // it waits for the work on the request
	}
}

// pushDraft returns hdsd's next response of its own, not yet encoded; nil: there is none. Without
// room for the response, it is not ready. The caller has locked mu, and pushDraft unlocks it.
func (st *stream) pushDraft(room *pushRoom) (d *message.Draft, ready bool) {
	defer st.mu.Unlock()
	st.markDirty()
	if l := st.ledgers[assignments]; l != nil {
		l.updatePanels(st.server) // although the push may have to wait for room or an answer
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
