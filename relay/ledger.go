package relay

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"hdsd/internal/share"
	"hdsd/relay/message"
)

// maxOffers is how many responses a client may leave unanswered; older ones count as
// accepted.
const maxOffers = 64

// maxPush is the size above which a response of changes is split.
const maxPush = 1 << 20

// had is what a client had of one name.
type had struct {
	now  *sent // what it was sent last
	good *sent // what it accepted before, if now is open; nil: nothing
	open bool  // it has not accepted now
}

// offer is a response that the client has not answered.
type offer struct {
	nonce   string
	own     bool    // hdsd's, not the control plane's
	brings  []*sent // what it brings
	gone    map[string]had
	order   []string // before it
	version string   // before it
}

// ledger is what a client has of one type, on one stream. Guarded by stream.mu.
type ledger struct {
	kind  kind
	delta bool
	stock *stock

	held    holdings         // what it was sent last
	open    map[string]*sent // names of which it has not accepted that, and what it accepted before; nil: none
	order   []string         // state of the world: the clusters as they came
	version string           // state of the world: the control plane's
	offers  []*offer
	dirty   map[string]bool // health may have changed; true: it goes out though it has not. Nil while none has

	key    nodeKey
	memory *memory

	tag      string // of hdsd's own nonces
	count    uint64 // of these
	begun    bool   // there was a request
	heard    bool   // there was a response of the control plane
	asks     scope  // in the last request
	partial  bool   // it was given back a part of the clusters of a state-of-the-world response
	answered string // the nonce of the control plane that was answered last
	claims   claims
}

func newLedger(k kind, delta bool, node [sha256.Size]byte, m *memory, tag string, room func(int64) (*share.Lease, error)) *ledger {
	return &ledger{kind: k, delta: delta, stock: m.stock, key: nodeKey{node, k, delta}, memory: m, tag: tag, claims: claims{take: room}}
}

func (l *ledger) drop(all ...*sent) { l.stock.unhold(all...) }

// put notes what the client is sent under a name.
func (l *ledger) put(now *sent) {
	name := now.name()
	before := l.held.put(hold(now))
	delete(l.dirty, name)
	if _, open := l.open[name]; open || before.is(now) {
		l.drop(before)
		return
	}
	l.setOpen(name, before)
}

// setOpen notes that the client has not accepted what it was sent, and what it has accepted.
func (l *ledger) setOpen(name string, good *sent) {
	if l.open == nil {
		l.open = make(map[string]*sent)
	}
	l.open[name] = good
}

// settle notes that the client has what it was sent. It returns what it accepted before.
func (l *ledger) settle(name string) (good *sent) {
	good = l.open[name]
	if delete(l.open, name); len(l.open) == 0 {
		l.open = nil // its memory: at a start it had all names
	}
	return good
}

// remove notes that the client is told to forget a name. It returns what it had.
func (l *ledger) remove(name string) had {
	_, open := l.open[name]
	delete(l.dirty, name)
	return had{l.held.remove(name), l.settle(name), open}
}

func (l *ledger) forget(h had) { l.drop(h.now, h.good) }

// close gives everything back. What the client had is remembered.
func (l *ledger) close() {
	for _, good := range l.open {
		l.drop(good)
	}
	for _, o := range l.offers {
		l.end(o)
	}
	l.memory.remember(l, time.Now())
	l.held, l.open, l.offers = holdings{}, nil, nil
	l.claims.clear()
}

// offer notes a response that goes out.
func (l *ledger) offer(o *offer) {
	l.offers = append(l.offers, o)
	if len(l.offers) > maxOffers {
		l.accept(l.offers[0])
		l.offers = l.offers[1:]
	}
}

// end gives back what an offer keeps.
func (l *ledger) end(o *offer) {
	l.drop(o.brings...)
	for _, h := range o.gone {
		l.forget(h)
	}
}

// accept notes that the client has what an offer brought.
func (l *ledger) accept(o *offer) {
	for _, s := range o.brings {
		name := s.name()
		switch _, open := l.open[name]; {
		case !open: // it has something newer, or nothing
		case l.held.get(name).is(s):
			l.drop(l.settle(name))
		default: // what came later, it has yet to answer
			l.drop(l.open[name])
			l.open[name] = hold(s)
		}
	}
	l.end(o)
}

// refuse takes an offer of the control plane back: the client keeps what it had.
func (l *ledger) refuse(o *offer) {
	if o.own {
		l.end(o) // it is sent again when it changes
		return
	}
	for _, s := range o.brings {
		name := s.name()
		if now := l.held.get(name); now == nil || now.item != s.item {
			continue
		}
		if _, open := l.open[name]; open {
			if good := l.settle(name); good != nil {
				l.drop(l.held.put(good))
			} else {
				l.forget(l.remove(name))
				continue
			}
		}
		l.setDirty(name, false)
	}
	for name, h := range o.gone {
		if l.held.get(name) == nil {
			l.held.put(h.now)
			if h.open {
				l.setOpen(name, h.good)
			}
			l.setDirty(name, false)
			delete(o.gone, name)
		}
	}
	if !l.delta {
		l.order, l.version = o.order, o.version
	}
	l.end(o)
}

// answer notes the client's answer to a response. Those before it count as accepted.
func (l *ledger) answer(nonce string, refused bool) {
	at := slices.IndexFunc(l.offers, func(o *offer) bool { return o.nonce == nonce })
	if at < 0 {
		return
	}
	for _, o := range l.offers[:at] {
		l.accept(o)
	}
	o := l.offers[at]
	if l.offers = slices.Clone(l.offers[at+1:]); refused {
		l.refuse(o)
	} else {
		l.accept(o)
	}
	if !o.own {
		l.answered = nonce
	}
}

// hashOf returns a hash of names, in any order.
func hashOf(names []string) (sum uint64) {
	for _, name := range names {
		if name != "*" {
			sum += xxhash.Sum64String(name)
		}
	}
	return sum
}

// isOwn reports whether a nonce is one of hdsd's.
func (l *ledger) isOwn(nonce string) bool { return strings.HasPrefix(nonce, l.tag) }

// request takes a request. It returns what the control plane gets of it; nil: nothing.
func (l *ledger) request(r *message.Request, wire []byte) ([]byte, error) {
	first := !l.begun
	l.begun = true
	if r.Nonce != "" {
		l.answer(r.Nonce, r.Refused)
	}
	own, before := l.isOwn(r.Nonce), l.asks
	l.ask(r, first)
	e := &message.Edit{Nonce: r.Nonce, Version: message.Original}
	if l.delta {
		return l.deltaRequest(r, wire, e, own)
	}
	if own && l.asks == before {
		return nil, nil
	}
	l.keepOnly(r.Names)
	if own {
		e.Nonce, e.NoAnswer = l.answered, true
	}
	if first && (r.Version == "" || !l.resumeState(r)) { // the control plane has to send all of it
		e.Version = func(string) string { return "" }
	}
	return message.RewriteRequest(false, wire, e)
}

func (l *ledger) deltaRequest(r *message.Request, wire []byte, e *message.Edit, own bool) ([]byte, error) {
	if own {
		if !r.Changes && r.Claims == 0 {
			return nil, nil
		}
		e.Nonce, e.NoAnswer = "", true
	}
	for _, name := range r.Unsubscribe {
		l.forget(l.remove(name))
		l.claims.settle(name, "")
	}
	if r.Claims > 0 {
		l.resumeDelta(r)
	}
	e.Initial = func(name, version string) string {
		if l.held.get(name) != nil {
			return message.Original(version)
		}
		// hdsd does not have the resource, so the control plane has to send it. That
		// the client has one, it has to know: it may have removed it.
		return message.Mark(version, 0)
	}
	return message.RewriteRequest(true, wire, e)
}

// keepOnly forgets what a state-of-the-world client no longer asks for.
func (l *ledger) keepOnly(names []string) {
	if len(names) == 0 || slices.Contains(names, "*") {
		return
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	for _, name := range l.without(wanted) {
		l.forget(l.remove(name))
	}
}

// without lists the names that are held and not wanted.
func (l *ledger) without(wanted map[string]bool) (names []string) {
	for s := range l.held.all() {
		if name := s.name(); !wanted[name] {
			names = append(names, name)
		}
	}
	return names
}

// response takes a response of the control plane whose resources are in items, and
// returns it as the client gets it.
func (l *ledger) response(s *Server, r *message.Response, items []*item, wire []byte) ([]byte, error) {
	l.heard = true
	o := &offer{nonce: r.Nonce, brings: make([]*sent, 0, len(items)), order: l.order, version: l.version}
	if l.held.count == 0 {
		l.held.reserve(len(items))
		l.open = make(map[string]*sent, len(items))
	}
	out := r.Resources // each is replaced by what the client gets
	marked, came := false, time.Now()
	for n, i := range items {
		if i == nil { // a heartbeat, or nothing that has a name
			var err error
			if out[n], err = l.heartbeat(out[n]); err != nil {
				return nil, err
			}
			continue
		}
		i.renew(came)
		now := i.render(s)
		if now.sent.change != 0 {
			out[n], marked = now.wire, true
		}
		if l.claims.settle(i.body.name, i.versionOf(now)) && i.body.lease == 0 {
			out[n] = nil
		}
		o.brings = append(o.brings, hold(now.sent))
		l.put(now.sent)
	}
	for _, name := range r.Removed {
		l.claims.settle(name, "")
		o.take(name, l.remove(name))
	}
	if !l.delta {
		l.version = r.Version
		if l.kind == clusters {
			l.keepThose(o)
		}
	}
	l.memory.replace(l, o, r.Removed)
	l.offer(o)
	return message.RewriteResponse(l.delta, wire, l.marked(r.Version, marked), out)
}

// heartbeat returns a resource without a body as the client gets it.
func (l *ledger) heartbeat(wire []byte) ([]byte, error) {
	u, err := message.ParseUnit(l.delta, wire)
	if err != nil {
		return nil, err
	}
	if now := l.held.get(u.Name); l.delta && now != nil && now.change != 0 && now.item.version == u.Version {
		return message.RewriteUnit(true, wire, &u, u.Body, message.Mark(u.Version, now.change))
	}
	return wire, nil
}

// keepThose notes that a whole response has these resources, in this order, and no others.
func (l *ledger) keepThose(o *offer) {
	l.order = make([]string, 0, len(o.brings))
	has := make(map[string]bool, len(o.brings))
	for _, s := range o.brings {
		if name := s.name(); !has[name] {
			has[name] = true
			l.order = append(l.order, name)
		}
	}
	for _, name := range l.without(has) {
		o.take(name, l.remove(name))
	}
}

// take keeps what the client had until it answers.
func (o *offer) take(name string, before had) {
	if before.now == nil {
		return
	}
	if o.gone == nil {
		o.gone = map[string]had{}
	}
	o.gone[name] = before
}

// marked returns the version of a response with these resources, which have changed or not.
func (l *ledger) marked(version string, changed bool) string {
	if l.delta {
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
}

// push returns a response of hdsd's own with what has changed; nil: nothing has, or the
// client has yet to answer. An Envoy uses a changed cluster when it has its assignment
// again: warms are the names of these.
func (l *ledger) push(s *Server) (m []byte, warms []string) {
	if len(l.dirty) == 0 {
		l.dirty = nil // its memory: after a start it had all names
		return nil, nil
	}
	if len(l.offers) > 0 || l.partial {
		return nil, nil
	}
	var names []string
	size, moment := 0, time.Now()
	for _, name := range slices.Sorted(maps.Keys(l.dirty)) {
		before := l.held.get(name)
		if before == nil {
			delete(l.dirty, name)
			continue
		}
		now := before.item.render(s)
		if now.sent.change == before.change && !l.dirty[name] || before.item.stale(moment) { // that ends for the client, too
			delete(l.dirty, name)
			continue
		}
		if size += len(now.wire); size > maxPush && len(names) > 0 && l.key.splits() {
			break
		}
		names = append(names, name)
		if before.item.body.byEDS {
			warms = append(warms, before.item.body.service)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	if !l.key.splits() {
		names = l.order
		clear(l.dirty)
	}
	return l.build(s, names, moment), warms
}

func (l *ledger) build(s *Server, names []string, moment time.Time) []byte {
	l.count++
	o := &offer{nonce: fmt.Sprintf("%s%d", l.tag, l.count), own: true, brings: make([]*sent, 0, len(names))}
	all := make([][]byte, 0, len(names))
	for _, name := range names {
		before := l.held.get(name)
		if before == nil {
			continue
		}
		now := before.item.render(s)
		all = append(all, before.item.own(now, moment))
		o.brings = append(o.brings, hold(now.sent))
		l.put(now.sent)
	}
	l.offer(o)
	return message.Build(l.delta, l.kind.typeURL(), o.nonce, l.marked(l.version, false), all)
}
