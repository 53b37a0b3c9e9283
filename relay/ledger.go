package relay

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"hdsd/peer/limit"
	"hdsd/relay/message"
)

// maxOffers is how many responses a client may leave unanswered; older ones count as
// accepted.
const maxOffers = 64

// maxPush is the size above which a response of changes is split.
const maxPush = 1 << 20

// offer is a response that the client has not answered.
type offer struct {
	nonce   string
	own     bool               // hdsd's, not the control plane's
	version string             // of the control plane's, state of the world
	brings  []*sent            // what it brings
	unread  bool               // it has more than that: what hdsd does not read, or the client does not ask for
	gone    map[string][]*sent // what the client may have had of names that it removes
}

// ledger is what a client has of one type, on one stream. Guarded by stream.mu.
type ledger struct {
	held    holdings // what it was sent last
	doubts  doubts   // what it may have instead
	order   []string // state of the world: the clusters as they came last
	version string   // state of the world: of the control plane's latest response that it accepted
	offers  []*offer
	dirty   map[string]bool // health may have changed; true: it goes out though it has not. Nil while none has

	panels panels

	key    nodeKey
	memory *memory
	caller string
	peers  kin

	tag      string // of hdsd's own nonces
	count    uint64 // of these
	begun    bool   // there was a request
	heard    bool   // there was a response of the control plane
	asks     scope  // in the last request
	named    names  // delta: what it asks for by name
	partial  bool   // it was given back a part of the clusters of a state-of-the-world response
	answered string // the nonce of the control plane that was answered last
	claims   claims
}

func newLedger(k kind, delta bool, node [sha256.Size]byte, m *memory, tag string, room func(int64) (*limit.Lease, error)) *ledger {
	return &ledger{doubts: doubts{stock: m.stock}, key: nodeKey{node, k, delta}, memory: m, tag: tag, claims: claims{take: room}}
}

func (l *ledger) drop(all ...*sent) { l.memory.stock.unhold(all...) }

// put notes what the client is sent under a name. It returns what it was sent before, if that
// was another change of hdsd's.
func (l *ledger) put(now *sent) (before *sent) {
	name := now.name()
	before = l.putHeld(hold(now))
	l.regroup(before, now)
	delete(l.dirty, name)
	if before.is(now) {
		l.drop(before)
		return nil
	}
	l.doubts.open(name, before, now)
	return before
}

// putHeld notes what the client has of a name, and returns what it had.
func (l *ledger) putHeld(now *sent) (before *sent) {
	l.peers.node.lock()
	defer l.peers.node.unlock()
	return l.held.put(now)
}

// remove notes that the client is told to forget a name. It returns what it may have had,
// the latest at the end.
func (l *ledger) remove(name string) []*sent {
	delete(l.dirty, name)
	l.panels.set(name, nil)
	all := l.doubts.take(name)
	l.peers.node.lock()
	now := l.held.remove(name)
	if l.peers.node.unlock(); now != nil {
		all = append(all, now)
	}
	return all
}

// names lists what the client has, and what it may have kept.
func (l *ledger) names() []string {
	names := slices.Collect(maps.Keys(l.doubts.removed))
	for s := range l.held.all() {
		names = append(names, s.name())
	}
	for _, o := range l.offers {
		names = slices.AppendSeq(names, maps.Keys(o.gone))
	}
	return names
}

// forget notes that the client does not have a name any more.
func (l *ledger) forget(name string) { l.drop(l.remove(name)...) }

// close gives everything back. What the client may have had is remembered.
func (l *ledger) close() {
	for _, o := range l.offers {
		if !o.own {
			l.version = o.version // if it takes it, and does not get to say so
		}
	}
	if len(l.offers) == 0 && len(l.doubts.good) > 0 {
		l.version = "" // no version says what it has
	}
	var others []*sent
	for _, o := range l.offers { // a removal without an answer may not have come
		for _, all := range o.gone {
			others = append(others, all...)
		}
		o.gone = nil
		l.end(o)
	}
	others = append(others, l.doubts.all()...)
	l.memory.remember(l, others, time.Now())
	l.peers.node.lock()
	l.held, l.offers = holdings{}, nil
	l.peers.node.unlock()
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
	for _, all := range o.gone {
		l.drop(all...)
	}
}

// accept notes that the client has what an offer brought.
func (l *ledger) accept(o *offer) {
	for _, s := range o.brings {
		name := s.name()
		switch {
		case !l.doubts.has(name): // it has something newer, or nothing
		case l.held.get(name).is(s):
			l.doubts.settle(name)
		default: // what came later, it has yet to answer
			l.doubts.accept(name, hold(s))
		}
	}
	for name := range o.gone {
		if l.doubts.has(name) { // it had nothing when that came
			l.doubts.accept(name, nil)
		}
	}
	if !l.key.splits() {
		l.doubts.gone() // the offer has all that there is
	}
	if !o.own {
		l.version = o.version
	}
	l.end(o)
}

// refuse notes that the client has refused an offer. It may have taken any part of it: what it
// has of the rest stays as it is, so that nothing is put back that it has.
func (l *ledger) refuse(o *offer) {
	if s := l.sole(o); s != nil && l.held.get(s.name()).is(s) {
		l.putBack(s)
	} else if s != nil {
		l.doubts.exclude(s)
	} else if l.key.splits() {
		for _, s := range o.brings {
			l.setDirty(s.name(), l.doubts.mayBeOther(l.held.get(s.name()))) // it may have an older version, without the latest health
		}
	}
	if !o.own { // hdsd says it once
		for name, all := range o.gone {
			l.doubts.keep(name, all, l.held.get(name) == nil)
		}
		o.gone = nil
	}
	l.end(o)
}

// sole returns the resource because of which a client refuses an offer, if that can be no other;
// nil: it may be any.
func (l *ledger) sole(o *offer) (sole *sent) {
	if o.unread {
		return nil
	}
	for _, s := range o.brings {
		if l.held.get(s.name()).is(s) && !l.doubts.has(s.name()) {
			continue // it was accepted before
		}
		if sole != nil {
			return nil
		}
		sole = s
	}
	return sole
}

// putBack notes that the client certainly does not have what it was sent last of a name. It gets
// the health of what it has instead.
func (l *ledger) putBack(s *sent) {
	name := s.name()
	if good := l.doubts.good[name]; good != nil && good.item.like(s.item) && len(l.doubts.refused[name]) == 0 {
		return // it is sent again when it changes
	}
	if previous := l.doubts.back(name); previous != nil {
		l.regroup(s, previous)
		l.drop(l.putHeld(previous))
		l.setDirty(name, l.doubts.has(name)) // then its answer says whether it has that
	} else if l.key.splits() {
		l.forget(name)
	}
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

// request takes a request, and what siblings knows of its claims. It returns what the control plane gets
// of the request; nil: nothing.
func (l *ledger) request(r *message.Request, wire []byte, siblings map[string][]*item) ([]byte, error) {
	first := !l.begun
	l.begun = true
	if r.Nonce != "" {
		l.answer(r.Nonce, r.Refused)
	}
	own, before := l.isOwn(r.Nonce), l.asks
	l.ask(r, first)
	e := &message.Edit{Nonce: r.Nonce, Version: message.Original}
	if l.key.delta {
		return l.deltaRequest(r, wire, e, own, siblings)
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

func (l *ledger) deltaRequest(r *message.Request, wire []byte, e *message.Edit, own bool, siblings map[string][]*item) ([]byte, error) {
	if own {
		if !r.Changes && r.Claims == 0 {
			return nil, nil
		}
		e.Nonce, e.NoAnswer = "", true
	}
	l.unsubscribe(r.Unsubscribe)
	if r.Claims > 0 {
		return l.resumeDelta(r, wire, e, siblings)
	}
	return message.RewriteRequest(true, wire, e)
}

// keepOnly forgets what a state-of-the-world client no longer asks for. None are none, unless
// it has never asked for any by name.
func (l *ledger) keepOnly(names []string) {
	if l.asks.wildcard {
		return
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	for _, name := range l.without(wanted) {
		l.forget(name)
	}
}

// without lists the names that are held and not wanted.
func (l *ledger) without(wanted map[string]bool) (names []string) {
	for s := range l.held.all() {
		if name := s.name(); !wanted[name] {
			names = append(names, name)
		}
	}
	for name := range l.doubts.removed {
		if !wanted[name] {
			names = append(names, name)
		}
	}
	return names
}

// response takes a response of the control plane whose resources are in items, puts those for the
// client's panel there, and returns it as the client gets it. warms are the names of assignments
// for which clusters in it wait, and which the control plane has no reason to send: only hdsd's part
// of these has changed.
func (l *ledger) response(s *Server, r *message.Response, items []*item, wire []byte) (d *message.Draft, warms []string, err error) {
	l.heard = true
	o := &offer{nonce: r.Nonce, version: r.Version, brings: make([]*sent, 0, len(items))}
	if l.held.count == 0 {
		l.peers.node.lock()
		l.held.reserve(len(items))
		l.peers.node.unlock()
		l.doubts.good = make(map[string]*sent, len(items))
	}
	out := r.Resources // each is replaced by what the client gets
	marked, came := false, time.Now()
	for n, i := range items {
		if i == nil || !l.wants(i.body) { // a heartbeat, nothing that has a name, or what the client has just given up
			if o.unread = true; i != nil {
				continue
			}
			if out[n], err = l.heartbeat(out[n], came); err != nil {
				return nil, nil, err
			}
			continue
		}
		i = l.settle(s, i)
		items[n] = i
		i.renew(came)
		now := i.render(s)
		if now.sent.change != 0 {
			out[n], marked = now.wire, true
		}
		claimed, same := l.claims.settle(i.body.name, i.versionOf(now))
		if same && i.body.lease == 0 && i.ttl == 0 && !l.dirty[i.body.name] {
			out[n] = nil
		}
		o.brings = append(o.brings, hold(now.sent))
		before := l.put(now.sent)
		if claimed && !same || before != nil && before.item.body == i.body && before.change != now.sent.change {
			warms = i.body.warms(warms)
		}
	}
	for _, name := range r.Removed {
		l.claims.settle(name, "")
		o.take(name, l.remove(name))
	}
	if !l.key.delta && l.key.kind == clusters {
		l.keepThose(o)
	}
	l.memory.replace(l, o, r.Removed)
	l.offer(o)
	return message.RewriteResponse(l.key.delta, wire, l.marked(r.Version, marked), out), warms, nil
}

// heartbeat returns a resource without a body as the client gets it. It renews the life of the
// resource that the client has.
func (l *ledger) heartbeat(wire []byte, arrival time.Time) ([]byte, error) {
	u, err := message.ParseUnit(l.key.delta, wire)
	if err != nil {
		return nil, err
	}
	now := l.held.get(u.Name)
	if now == nil || now.item.version != u.Version {
		return wire, nil
	}
	now.item.life.renew(arrival, u.TTL)
	if l.key.delta && now.change != 0 {
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
func (o *offer) take(name string, before []*sent) {
	if len(before) == 0 {
		return
	}
	if o.gone == nil {
		o.gone = map[string][]*sent{}
	}
	o.gone[name] = append(o.gone[name], before...)
}
