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
	nonce     string
	own       bool                   // of hdsd, not of the control plane
	version   string                 // of a state-of-the-world response of the control plane
	resources []*delivery            // the resources that it brings
	opaque    bool                   // it also has resources that hdsd does not read, or the client is not subscribed to
	removed   map[string][]*delivery // deliveries that the client may have of the names that it removes
}

// ledger knows the resources that a client has of a type, on a stream. stream.mu guards it.
type ledger struct {
	holdings holdings        // the latest deliveries
	doubts   doubts          // other deliveries that the client may have
	order    []string        // state of the world: the clusters of the latest response, in order
	version  string          // state of the world: of the control plane's latest accepted response
	offers   []*offer        // the oldest first
	dirty    map[string]bool // names whose health may have changed; true: the resource goes out in any case. Nil if empty

	panels panels

	key    nodeKey
	memory *memory
	caller string
	links  links

	noncePrefix   string        // of hdsd's own nonces
	ownCount      uint64        // number of hdsd's own nonces and versions
	requested     bool          // there was a request
	responded     bool          // there was a response of the control plane
	scope         scope         // of the latest request
	subscriptions subscriptions // delta
	partial       bool          // state of the world: hdsd remembers only some of the client's clusters
	lastNonce     string        // the control plane's nonce that the client has answered last
	claims        claims
}

func newLedger(k kind, delta bool, node [sha256.Size]byte, m *memory, tag string, room func(int64) (*limit.Lease, error)) *ledger {
	return &ledger{doubts: doubts{stock: m.stock}, key: nodeKey{node, k, delta}, memory: m, noncePrefix: tag, claims: claims{takeRoom: room}}
}

func (l *ledger) releaseAll(deliveries ...*delivery) { l.memory.stock.releaseDeliveries(deliveries...) }

// put notes a delivery that goes out. It returns the delivery before, if that was another one.
func (l *ledger) put(latest *delivery) (previous *delivery) {
	name := latest.name()
	previous = l.setHolding(retain(latest))
	l.regroup(previous, latest)
	delete(l.dirty, name)
	if previous.equal(latest) {
		l.releaseAll(previous)
		return nil
	}
	l.doubts.begin(name, previous, latest)
	return previous
}

// setHolding sets the latest delivery of a name, and returns the one before.
func (l *ledger) setHolding(latest *delivery) (previous *delivery) {
	l.links.node.lock()
	defer l.links.node.unlock()
	return l.holdings.put(latest)
}

// remove notes that a removal of a name goes out. It returns the deliveries that the client may have, the
// latest at the end.
func (l *ledger) remove(name string) []*delivery {
	delete(l.dirty, name)
	l.panels.set(name, nil)
	deliveries := l.doubts.take(name)
	l.links.node.lock()
	latest := l.holdings.remove(name)
	if l.links.node.unlock(); latest != nil {
		deliveries = append(deliveries, latest)
	}
	return deliveries
}

// names lists the names of all deliveries that the client may have. Some may come twice.
func (l *ledger) names() []string {
	names := slices.Collect(maps.Keys(l.doubts.removed))
	for s := range l.holdings.all() {
		names = append(names, s.name())
	}
	for _, o := range l.offers {
		names = slices.AppendSeq(names, maps.Keys(o.removed))
	}
	return names
}

// forget notes that the client has nothing of a name.
func (l *ledger) forget(name string) { l.releaseAll(l.remove(name)...) }

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
	var deliveries []*delivery
	for _, o := range l.offers { // an unanswered removal may not have reached the client
		for _, removed := range o.removed {
			deliveries = append(deliveries, removed...)
		}
		o.removed = nil
		l.release(o)
	}
	deliveries = append(deliveries, l.doubts.takeAll()...)
	l.memory.remember(l, deliveries, time.Now())
	l.links.node.lock()
	l.holdings, l.offers = holdings{}, nil
	l.links.node.unlock()
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
func (l *ledger) release(o *offer) {
	l.releaseAll(o.resources...)
	for _, removed := range o.removed {
		l.releaseAll(removed...)
	}
}

// accept notes that the client has accepted an offer.
func (l *ledger) accept(o *offer) {
	for _, s := range o.resources {
		name := s.name()
		switch {
		case !l.doubts.open(name): // it has accepted a newer one, or none is left
		case l.holdings.get(name).equal(s):
			l.doubts.settle(name)
		default: // it has yet to answer a newer one
			l.doubts.accept(name, retain(s))
		}
	}
	for name := range o.removed {
		if l.doubts.open(name) { // the removal is older than the resource in doubt
			l.doubts.accept(name, nil)
		}
	}
	if !l.key.splits() {
		l.doubts.releaseRemoved() // the offer has all clusters of the client
	}
	if !o.own {
		l.version = o.version
	}
	l.release(o)
}

// refuse notes that the client has refused an offer. If only one resource can be the reason, the client does
// not have it. Otherwise it may have taken any of them, and each stays in doubt.
func (l *ledger) refuse(o *offer) {
	if s := l.suspect(o); s != nil && l.holdings.get(s.name()).equal(s) {
		l.revert(s)
	} else if s != nil {
		l.doubts.exclude(s)
	} else if l.key.splits() {
		for _, s := range o.resources {
			l.setDirty(s.name(), l.doubts.otherCheck(l.holdings.get(s.name()))) // the client may have an older one, without the latest health
		}
	}
	if !o.own { // hdsd repeats a removal once
		for name, removed := range o.removed {
			l.doubts.addRemoved(name, removed, l.holdings.get(name) == nil)
		}
		o.removed = nil
	}
	l.release(o)
}

// suspect returns the resource of a refused offer that the client has refused; nil: it may be any of several.
func (l *ledger) suspect(o *offer) (sole *delivery) {
	if o.opaque {
		return nil
	}
	for _, s := range o.resources {
		if l.holdings.get(s.name()).equal(s) && !l.doubts.open(s.name()) {
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
func (l *ledger) revert(s *delivery) {
	name := s.name()
	if good := l.doubts.good[name]; good != nil && good.item.sameResource(s.item) && len(l.doubts.refused[name]) == 0 {
		return // only health differs: it goes out again with the next change
	}
	if previous := l.doubts.takePrevious(name); previous != nil {
		l.regroup(s, previous)
		l.releaseAll(l.setHolding(previous))
		l.setDirty(name, l.doubts.open(name)) // then its answer says whether it has that
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
		l.lastNonce = nonce
	}
}

// hashNames returns a hash of names, in any order.
func hashNames(names []string) (sum uint64) {
	for _, name := range names {
		if name != "*" {
			sum += xxhash.Sum64String(name)
		}
	}
	return sum
}

// isOwn reports whether a nonce is one of hdsd's own.
func (l *ledger) isOwn(nonce string) bool { return strings.HasPrefix(nonce, l.noncePrefix) }

// request takes a request, and the items that siblings found for it. It returns the request for the control
// plane; nil: the control plane gets none.
func (l *ledger) request(r *message.Request, wire []byte, siblings map[string][]*item) ([]byte, error) {
	first := !l.requested
	l.requested = true
	if r.Nonce != "" {
		l.answer(r.Nonce, r.Refused)
	}
	ownNonce, previous := l.isOwn(r.Nonce), l.scope
	l.setScope(r, first)
	e := &message.Edit{Nonce: r.Nonce, Version: message.Original}
	if l.key.delta {
		return l.deltaRequest(r, wire, e, ownNonce, siblings)
	}
	if ownNonce && l.scope == previous {
		return nil, nil
	}
	l.keepSubscribed(r.Names)
	if ownNonce {
		e.Nonce, e.NoAnswer = l.lastNonce, true
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
func (l *ledger) keepSubscribed(names []string) {
	if l.scope.wildcard {
		return
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	for _, name := range l.unwanted(wanted) {
		l.forget(name)
	}
}

// unwanted lists the names that the client may have, and that are not in wanted.
func (l *ledger) unwanted(wanted map[string]bool) (names []string) {
	for s := range l.holdings.all() {
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
	l.responded = true
	o := &offer{nonce: r.Nonce, version: r.Version, resources: make([]*delivery, 0, len(items))}
	if l.holdings.count == 0 {
		l.links.node.lock()
		l.holdings.reserve(len(items))
		l.links.node.unlock()
		l.doubts.good = make(map[string]*delivery, len(items))
	}
	resources := r.Resources // for the client
	changed, arrival := false, time.Now()
	for n, i := range items {
		if i == nil || !l.wants(i.body) { // a heartbeat, a resource without a name, or one that the client has just given up
			if o.opaque = true; i != nil {
				continue
			}
			if resources[n], err = l.heartbeat(resources[n], arrival); err != nil {
				return nil, nil, err
			}
			continue
		}
		i = l.forPanel(s, i)
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
		o.resources = append(o.resources, retain(rendered.sent))
		previous := l.put(rendered.sent)
		if claimed && !same || previous != nil && previous.item.body == i.body && previous.change != rendered.sent.change {
			warms = i.body.warms(warms)
		}
	}
	for _, name := range r.Removed {
		l.claims.settle(name, "")
		o.addRemoved(name, l.remove(name))
	}
	if !l.key.delta && l.key.kind == clusters {
		l.setOrder(o)
	}
	l.memory.replace(l, o, r.Removed)
	l.offer(o)
	return message.RewriteResponse(l.key.delta, wire, l.markVersion(r.Version, changed), resources), warms, nil
}

// heartbeat returns a heartbeat for the client, and renews the life of the client's resource.
func (l *ledger) heartbeat(wire []byte, arrival time.Time) ([]byte, error) {
	u, err := message.ParseUnit(l.key.delta, wire)
	if err != nil {
		return nil, err
	}
	d := l.holdings.get(u.Name)
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
func (l *ledger) setOrder(o *offer) {
	l.order = make([]string, 0, len(o.resources))
	names := make(map[string]bool, len(o.resources))
	for _, s := range o.resources {
		if name := s.name(); !names[name] {
			names[name] = true
			l.order = append(l.order, name)
		}
	}
	for _, name := range l.unwanted(names) {
		o.addRemoved(name, l.remove(name))
	}
}

// addRemoved keeps deliveries of a removed name until the client answers.
func (o *offer) addRemoved(name string, deliveries []*delivery) {
	if len(deliveries) == 0 {
		return
	}
	if o.removed == nil {
		o.removed = map[string][]*delivery{}
	}
	o.removed[name] = append(o.removed[name], deliveries...)
}
