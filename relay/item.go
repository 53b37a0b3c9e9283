package relay

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"hdsd/envoy"
	"hdsd/relay/message"
)

// item is a resource in the form that it has in responses of the control plane. Nodes with the same
// resource share it.
type item struct {
	body    *body
	wire    []byte // a Resource (delta) or an Any (state of the world)
	hash    uint64
	delta   bool
	version string // of the resource; empty by state of the world, unless it is in a Resource
	wrapped bool   // state of the world: it is in a Resource

	refs    atomic.Int32
	removed bool // it has left the stock; guarded by stock.mu

	panel *panel // of the nodes. Set once

	rendered atomic.Pointer[rendering] // with the latest health
	ttl      time.Duration             // of the Resource; 0: it has none
	lease    term                      // of an assignment: after it, its endpoints are stale
	life     term                      // of the resource: ends with its ttl, which heartbeats renew
}

// term is a time span that the control plane renews. The zero value has no end.
type term struct{ end atomic.Pointer[time.Time] }

// renew starts a term again. A duration of 0 leaves it without an end.
func (t *term) renew(now time.Time, duration time.Duration) {
	if duration == 0 {
		t.end.Store(nil)
		return
	}
	end := now.Add(duration)
	t.end.Store(&end)
}

// remaining returns the rest of a term, in whole milliseconds, and whether it has an end.
func (t *term) remaining(now time.Time) (rest time.Duration, ends bool) {
	end := t.end.Load()
	if end == nil {
		return 0, false
	}
	return end.Sub(now).Truncate(time.Millisecond), true
}

// rendering is the encoded form of an item with health.
type rendering struct {
	stamp   atomic.Uint64 // of the book when it was made, or last found to be up to date
	sent    *delivery
	version string // with a mark
	wire    []byte
}

// sameResource reports whether two items are of the same resource, for any panels.
func (i *item) sameResource(x *item) bool { return i.body == x.body && i.hash == x.hash }

// render returns an item with the latest health.
func (i *item) render(s *Server) *rendering {
	stamp, previous := s.book.stamp.Load(), i.rendered.Load()
	if previous != nil && previous.stamp.Load() == stamp {
		return previous
	}
	body, change := i.body.latest(s, i.panel)
	if previous != nil && previous.sent.change == change {
		previous.stamp.Store(stamp)
		return previous
	}
	next := &rendering{sent: &delivery{i, change}, version: i.version, wire: i.wire}
	if change != 0 {
		next.version = message.Mark(i.version, change)
		wire, err := message.RewriteUnit(i.delta, i.wire, &message.Unit{Version: i.version, Wrapped: i.wrapped, TTL: i.ttl}, body, i.versionOf(next))
		if err != nil { // does not happen: it was read
			next.sent, next.version = &delivery{i, 0}, i.version
		} else {
			next.wire = wire
		}
	}
	next.stamp.Store(stamp)
	i.rendered.Store(next)
	return next
}

// renew starts the lease and the life of an item again: the control plane has sent it to a node.
func (i *item) renew(now time.Time) {
	i.lease.renew(now, i.body.lease)
	i.life.renew(now, i.ttl)
}

// stale reports whether the lease or the life of an item is over. An Envoy takes less than a millisecond
// for a lease without an end.
func (i *item) stale(now time.Time) bool {
	lease, leased := i.lease.remaining(now)
	life, expires := i.life.remaining(now)
	return leased && lease <= 0 || expires && life <= 0
}

// ownWire encodes a rendering for hdsd's own responses: with the rest of its lease and of its life.
func (i *item) ownWire(r *rendering, now time.Time) []byte {
	lease, leased := i.lease.remaining(now)
	life, expires := i.life.remaining(now)
	if !leased && !expires && i.ttl == 0 {
		return r.wire
	}
	u, err := message.ParseUnit(i.delta, r.wire)
	if err != nil {
		return r.wire // does not happen: it was read
	}
	body := u.Body
	if leased {
		body = envoy.WithLease(body, lease)
	}
	u.TTL = life
	wire, err := message.RewriteUnit(i.delta, r.wire, &u, body, u.Version)
	if err != nil {
		return r.wire
	}
	return wire
}

// delivery returns the delivery of an item with a change.
func (i *item) delivery(change uint64) *delivery {
	if r := i.rendered.Load(); r != nil && r.sent.change == change {
		return r.sent
	}
	return &delivery{i, change}
}

// versionOf returns the version of a rendering. By state of the world, all resources have that of the
// response.
func (i *item) versionOf(r *rendering) string {
	if i.delta {
		return r.version
	}
	return i.version
}

// acquire returns the item of a resource of a response, with one more reference; nil if the resource has no
// body or no name. The moment is for await; 0: hdsd's core knows the resource.
func (s *stock) acquire(k kind, delta bool, wire []byte) (i *item, moment uint64, err error) {
	hash := maphash.Bytes(seed, wire)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i = s.findItem(k, delta, wire, hash); i != nil {
		i.refs.Add(1)
		return i, s.pending(i.body), nil
	}
	s.mu.Unlock()
	i, err = s.newItem(k, delta, wire, hash) // without the lock: it decodes
	s.mu.Lock()
	if err != nil || i == nil {
		return nil, 0, err
	}
	if existing := s.findItem(k, delta, wire, hash); existing != nil {
		i = existing
	} else {
		i.body = s.intern(i.body)
		s.addItem(i)
	}
	i.refs.Add(1)
	return i, s.pending(i.body), nil
}

// forPanel returns the item of a resource for nodes with a panel, with one more reference. The caller has a
// reference to i.
func (s *stock) forPanel(i *item, p *panel) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := slices.IndexFunc(s.items[i.hash], func(x *item) bool {
		return x.sameResource(i) && x.delta == i.delta && x.panel.equal(p)
	})
	var result *item
	if index >= 0 {
		result = s.items[i.hash][index]
	} else {
		result = &item{body: i.body, wire: i.wire, hash: i.hash, delta: i.delta, version: i.version, wrapped: i.wrapped, ttl: i.ttl, panel: p}
		result.lease.end.Store(i.lease.end.Load())
		result.life.end.Store(i.life.end.Load())
		s.addItem(result)
	}
	result.refs.Add(1)
	return result
}

// addItem adds an item.
func (s *stock) addItem(i *item) {
	s.items[i.hash] = append(s.items[i.hash], i)
	if x := i.body; x.countItem(i.panel, 1) && x.itemCount > 1 {
		s.markSpread(x)
	}
}

// removeItem removes an item, and its resource with the last item.
func (s *stock) removeItem(i *item) {
	removeFrom(s.items, i.hash, i)
	switch x := i.body; {
	case x.countItem(i.panel, -1) && x.itemCount > 0:
		s.markSpread(x)
	case x.itemCount == 0:
		s.removeBody(x)
	}
}

// markSpread has the catalogue look at a resource again that nodes with other panels have now.
func (s *stock) markSpread(x *body) {
	s.dirty[subject{x.kind, x.name}] = true
	s.wakeUp()
}

// findItem returns an item of a resource; nil: there is none.
func (s *stock) findItem(k kind, delta bool, wire []byte, hash uint64) *item {
	for _, i := range s.items[hash] {
		if i.body.kind == k && i.delta == delta && bytes.Equal(i.wire, wire) {
			return i
		}
	}
	return nil
}

// newItem makes an item; nil if the resource has no body or no name.
func (s *stock) newItem(k kind, delta bool, wire []byte, hash uint64) (*item, error) {
	wire = bytes.Clone(wire)
	u, err := message.ParseUnit(delta, wire)
	if err != nil {
		return nil, fmt.Errorf("read a resource: %w", err)
	}
	if u.Body == nil || u.Name == "" {
		return nil, nil
	}
	i := &item{wire: wire, hash: hash, delta: delta, version: u.Version, wrapped: u.Wrapped, ttl: u.TTL}
	s.mu.Lock()
	i.body = s.findBody(identityOf(k, u.Name, u.Body), k, u.Name, u.Body)
	s.mu.Unlock()
	if i.body == nil {
		i.body = newBody(k, u.Name, u.Body, s.maxEndpoints)
		i.body.remembered = k == clusters && s.remembers(u.Name, i.body.group)
	}
	return i, nil
}

// intern returns the equal body of the stock, or adds this one.
func (s *stock) intern(x *body) *body {
	if existing := s.findBody(x.identity, x.kind, x.name, x.wire); existing != nil {
		return existing
	}
	s.addBody(x)
	return x
}

// pending returns the moment after which hdsd's core knows a resource; 0: it knows the resource.
func (s *stock) pending(x *body) uint64 {
	if x.moment <= s.applied {
		return 0
	}
	return x.moment
}

// retain returns a delivery with one more reference. The caller has one. It ignores nil.
func retain(s *delivery) *delivery {
	if s != nil {
		s.item.refs.Add(1)
	}
	return s
}

// releaseDeliveries gives references back. It ignores nil.
func (s *stock) releaseDeliveries(deliveries ...*delivery) {
	for _, d := range deliveries {
		if d != nil {
			s.release(d.item)
		}
	}
}

// release gives references back. It ignores nil.
func (s *stock) release(items ...*item) {
	for _, i := range items {
		if i != nil && i.refs.Add(-1) == 0 {
			s.drop(i)
		}
	}
}

// drop removes an item, unless it has a reference again.
func (s *stock) drop(i *item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.removed || i.refs.Load() > 0 {
		return
	}
	i.removed = true
	s.removeItem(i)
}
