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

// maxOffers limits the unanswered responses of a client. Older ones count as accepted.
const maxOffers = 64

// maxPush is the size above which a response of changes is split.
const maxPush = 1 << 20

// offer is a response that the client has not answered.
type offer struct {
	nonce   string
	own     bool               // of hdsd, not of the control plane
	version string             // of a state-of-the-world response of the control plane
	brings  []*sent            // the resources that it brings
	unread  bool               // it also has resources that hdsd does not read, or the client is not subscribed to
	gone    map[string][]*sent // deliveries that the client may have of the names that it removes
}

// ledger knows the resources that a client has of a type, on a stream. stream.mu guards it.
type ledger struct {
	held    holdings        // the latest deliveries
	doubts  doubts          // other deliveries that the client may have
	order   []string        // state of the world: the clusters of the latest response, in order
	version string          // state of the world: of the control plane's latest accepted response
	offers  []*offer        // the oldest first
	dirty   map[string]bool // names whose health may have changed; true: the resource goes out in any case. Nil if empty

	panels panels

	key    nodeKey
	memory *memory
	caller string
	peers  kin

	tag      string // of hdsd's own nonces
	count    uint64 // number of hdsd's own nonces and versions
	begun    bool   // there was a request
	heard    bool   // there was a response of the control plane
	asks     scope  // of the latest request
	named    names  // delta
	partial  bool   // state of the world: hdsd remembers only some of the client's clusters
	answered string // the control plane's nonce that the client has answered last
	claims   claims
}

func newLedger(k kind, delta bool, node [sha256.Size]byte, m *memory, tag string, room func(int64) (*limit.Lease, error)) *ledger {
	return &ledger{doubts: doubts{stock: m.stock}, key: nodeKey{node, k, delta}, memory: m, tag: tag, claims: claims{take: room}}
}

func (l *ledger) drop(deliveries ...*sent) { l.memory.stock.unhold(deliveries...) }

// put notes a delivery that goes out. It returns the delivery before, if that was another one.
func (l *ledger) put(latest *sent) (previous *sent) {
	name := latest.name()
	previous = l.putHeld(hold(latest))
	l.regroup(previous, latest)
	delete(l.dirty, name)
	if previous.is(latest) {
		l.drop(previous)
		return nil
	}
	l.doubts.open(name, previous, latest)
	return previous
}

// setHolding sets the latest delivery of a name, and returns the one before.
func (l *ledger) putHeld(latest *sent) (previous *sent) {
	l.peers.node.lock()
	defer l.peers.node.unlock()
	return l.held.put(latest)
}

// remove notes that a removal of a name goes out. It returns the deliveries that the client may have, the
// latest at the end.
func (l *ledger) remove(name string) []*sent {
	delete(l.dirty, name)
	l.panels.set(name, nil)
	deliveries := l.doubts.take(name)
	l.peers.node.lock()
	latest := l.held.remove(name)
	if l.peers.node.unlock(); latest != nil {
		deliveries = append(deliveries, latest)
	}
	return deliveries
}

// names lists the names of all deliveries that the client may have. Some may come twice.
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

// forget notes that the client has nothing of a name.
func (l *ledger) forget(name string) { l.drop(l.remove(name)...) }

// close hands the deliveries that the client may have to the memory, and gives everything else back.
func (l *ledger) close() {
	for _, o := range l.offers {
		if !o.own {
			l.version = o.version // the client may have taken it
		}
	}
	if len(l.offers) == 0 && len(l.doubts.good) > 0 {
		l.version = "" // its resources are of several versions
	}
	var deliveries []*sent
	for _, o := range l.offers { // an unanswered removal may not have reached the client
		for _, removed := range o.gone {
			deliveries = append(deliveries, removed...)
		}
		o.gone = nil
		l.end(o)
	}
	deliveries = append(deliveries, l.doubts.all()...)
	l.memory.remember(l, deliveries, time.Now())
	l.peers.node.lock()
	l.held, l.offers = holdings{}, nil
	l.peers.node.unlock()
	l.claims.clear()
}

// offer adds a response that goes out.
func (l *ledger) offer(o *offer) {
	l.offers = append(l.offers, o)
	if len(l.offers) > maxOffers {
		l.accept(l.offers[0])
		l.offers = l.offers[1:]
	}
}

// release gives the references of an offer back.
func (l *ledger) end(o *offer) {
	l.drop(o.brings...)
	for _, removed := range o.gone {
		l.drop(removed...)
	}
}

// accept notes that the client has accepted an offer.
func (l *ledger) accept(o *offer) {
	for _, s := range o.brings {
		name := s.name()
		switch {
		case !l.doubts.has(name): // it has accepted a newer one, or none is left
		case l.held.get(name).is(s):
			l.doubts.settle(name)
		default: // it has yet to answer a newer one
			l.doubts.accept(name, hold(s))
		}
	}
	for name := range o.gone {
		if l.doubts.has(name) { // the removal is older than the resource in doubt
			l.doubts.accept(name, nil)
		}
	}
	if !l.key.splits() {
		l.doubts.gone() // the offer has all clusters of the client
	}
	if !o.own {
		l.version = o.version
	}
	l.end(o)
}

// refuse notes that the client has refused an offer. If only one resource can be the reason, the client does
// not have it. Otherwise it may have taken any of them, and each stays in doubt.
func (l *ledger) refuse(o *offer) {
	if s := l.sole(o); s != nil && l.held.get(s.name()).is(s) {
		l.putBack(s)
	} else if s != nil {
		l.doubts.exclude(s)
	} else if l.key.splits() {
		for _, s := range o.brings {
			l.setDirty(s.name(), l.doubts.mayBeOther(l.held.get(s.name()))) // the client may have an older one, without the latest health
		}
	}
	if !o.own { // hdsd repeats a removal once
		for name, removed := range o.gone {
			l.doubts.keep(name, removed, l.held.get(name) == nil)
		}
		o.gone = nil
	}
	l.end(o)
}

// suspect returns the resource of a refused offer that the client has refused; nil: it may be any of several.
func (l *ledger) sole(o *offer) (sole *sent) {
	if o.unread {
		return nil
	}
	for _, s := range o.brings {
		if l.held.get(s.name()).is(s) && !l.doubts.has(s.name()) {
			continue // the client has accepted it before
		}
		if sole != nil {
			return nil
		}
		sole = s
	}
	return sole
}

// revert notes that the client does not have the latest delivery of a name, and has the one before. It gets the
// latest health for that.
func (l *ledger) putBack(s *sent) {
	name := s.name()
	if good := l.doubts.good[name]; good != nil && good.item.like(s.item) && len(l.doubts.refused[name]) == 0 {
		return // only health differs: it goes out again with the next change
	}
	if previous := l.doubts.back(name); previous != nil {
		l.regroup(s, previous)
		l.drop(l.putHeld(previous))
		l.setDirty(name, l.doubts.has(name)) // then its answer says whether it has that
	} else if l.key.splits() {
		l.forget(name)
	}
}

// answer notes the client's answer to an offer. The offers before it count as accepted.
func (l *ledger) answer(nonce string, refused bool) {
	index := slices.IndexFunc(l.offers, func(o *offer) bool { return o.nonce == nonce })
	if index < 0 {
		return
	}
	for _, o := range l.offers[:index] {
		l.accept(o)
	}
	o := l.offers[index]
	if l.offers = slices.Clone(l.offers[index+1:]); refused {
		l.refuse(o)
	} else {
		l.accept(o)
	}
	if !o.own {
		l.answered = nonce
	}
}

// hashNames returns a hash of names, in any order.
func hashOf(names []string) (sum uint64) {
	for _, name := range names {
		if name != "*" {
			sum += xxhash.Sum64String(name)
		}
	}
	return sum
}

// isOwn reports whether a nonce is one of hdsd's own.
func (l *ledger) isOwn(nonce string) bool { return strings.HasPrefix(nonce, l.tag) }

// request takes a request, and the items that siblings found for it. It returns the request for the control
// plane; nil: the control plane gets none.
func (l *ledger) request(r *message.Request, wire []byte, siblings map[string][]*item) ([]byte, error) {
	first := !l.begun
	l.begun = true
	if r.Nonce != "" {
		l.answer(r.Nonce, r.Refused)
	}
	ownNonce, previous := l.isOwn(r.Nonce), l.asks
	l.ask(r, first)
	e := &message.Edit{Nonce: r.Nonce, Version: message.Original}
	if l.key.delta {
		return l.deltaRequest(r, wire, e, ownNonce, siblings)
	}
	if ownNonce && l.asks == previous {
		return nil, nil
	}
	l.keepOnly(r.Names)
	if ownNonce {
		e.Nonce, e.NoAnswer = l.answered, true
	}
	if first && (r.Version == "" || !l.resumeState(r)) { // the control plane has to send all resources
		e.Version = func(string) string { return "" }
	}
	return message.RewriteRequest(false, wire, e)
}

func (l *ledger) deltaRequest(r *message.Request, wire []byte, e *message.Edit, ownNonce bool, siblings map[string][]*item) ([]byte, error) {
	if ownNonce {
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

// keepSubscribed forgets the resources that a state-of-the-world client does not ask for any more. A request
// without names asks for none, unless the client has never sent a name.
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

// unwanted lists the names that the client may have, and that are not in wanted.
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

// response takes a response of the control plane with its items, replaces these by those for the client's
// panel, and returns the response for the client. warms are the names of assignments that clusters of the
// response wait for, and that the control plane does not send: only hdsd has changed the clusters.
func (l *ledger) response(s *Server, r *message.Response, items []*item, wire []byte) (d *message.Draft, warms []string, err error) {
	l.heard = true
	o := &offer{nonce: r.Nonce, version: r.Version, brings: make([]*sent, 0, len(items))}
	if l.held.count == 0 {
		l.peers.node.lock()
		l.held.reserve(len(items))
		l.peers.node.unlock()
		l.doubts.good = make(map[string]*sent, len(items))
	}
	resources := r.Resources // for the client
	changed, arrival := false, time.Now()
	for n, i := range items {
		if i == nil || !l.wants(i.body) { // a heartbeat, a resource without a name, or one that the client has just given up
			if o.unread = true; i != nil {
				continue
			}
			if resources[n], err = l.heartbeat(resources[n], arrival); err != nil {
				return nil, nil, err
			}
			continue
		}
		i = l.settle(s, i)
		items[n] = i
		i.renew(arrival)
		rendered := i.render(s)
		if rendered.sent.change != 0 {
			resources[n], changed = rendered.wire, true
		}
		claimed, same := l.claims.settle(i.body.name, i.versionOf(rendered))
		if same && i.body.lease == 0 && i.ttl == 0 && !l.dirty[i.body.name] {
			resources[n] = nil
		}
		o.brings = append(o.brings, hold(rendered.sent))
		previous := l.put(rendered.sent)
		if claimed && !same || previous != nil && previous.item.body == i.body && previous.change != rendered.sent.change {
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
	return message.RewriteResponse(l.key.delta, wire, l.marked(r.Version, changed), resources), warms, nil
}

// heartbeat returns a heartbeat for the client, and renews the life of the client's resource.
func (l *ledger) heartbeat(wire []byte, arrival time.Time) ([]byte, error) {
	u, err := message.ParseUnit(l.key.delta, wire)
	if err != nil {
		return nil, err
	}
	d := l.held.get(u.Name)
	if d == nil || d.item.version != u.Version {
		return wire, nil
	}
	d.item.life.renew(arrival, u.TTL)
	if l.key.delta && d.change != 0 {
		return message.RewriteUnit(true, wire, &u, u.Body, message.Mark(u.Version, d.change))
	}
	return wire, nil
}

// setOrder notes the order of a response with all clusters of the client, and removes its other clusters.
func (l *ledger) keepThose(o *offer) {
	l.order = make([]string, 0, len(o.brings))
	names := make(map[string]bool, len(o.brings))
	for _, s := range o.brings {
		if name := s.name(); !names[name] {
			names[name] = true
			l.order = append(l.order, name)
		}
	}
	for _, name := range l.without(names) {
		o.take(name, l.remove(name))
	}
}

// addRemoved keeps deliveries of a removed name until the client answers.
func (o *offer) take(name string, deliveries []*sent) {
	if len(deliveries) == 0 {
		return
	}
	if o.gone == nil {
		o.gone = map[string][]*sent{}
	}
	o.gone[name] = append(o.gone[name], deliveries...)
}
