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

// item is a resource as it stands in responses of the control plane, once for all nodes that
// are given it.
type item struct {
	body    *body
	wire    []byte // a Resource (delta) or an Any (state of the world)
	hash    uint64
	delta   bool
	version string // the control plane's, if it gives one to each resource
	wrapped bool   // state of the world: it is in a Resource

	refs atomic.Int32
	gone bool // guarded by stock.mu

	panel *panel // of the nodes that have it. Set once

	rendered atomic.Pointer[rendering] // the latest
	ttl      time.Duration             // of the Resource; 0: it has none
	lease    term                      // of an assignment: after it, its endpoints are stale
	life     term                      // of the resource: its ttl, which heartbeats renew
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

// rendering is an item as nodes get it.
type rendering struct {
	stamp   atomic.Uint64 // of the book, when it was made or found to be still right
	sent    *sent
	version string // with a mark
	wire    []byte
}

// like reports whether two are the same resource, for nodes with any panels.
func (i *item) like(other *item) bool { return i.body == other.body && i.hash == other.hash }

// render returns an item with the latest health in it.
func (i *item) render(s *Server) *rendering {
	stamp, before := s.book.stamp.Load(), i.rendered.Load()
	if before != nil && before.stamp.Load() == stamp {
		return before
	}
	out, change := i.body.latest(s, i.panel)
	if before != nil && before.sent.change == change {
		before.stamp.Store(stamp)
		return before
	}
	now := &rendering{sent: &sent{i, change}, version: i.version, wire: i.wire}
	if change != 0 {
		now.version = message.Mark(i.version, change)
		wire, err := message.RewriteUnit(i.delta, i.wire, &message.Unit{Version: i.version, Wrapped: i.wrapped, TTL: i.ttl}, out, i.versionOf(now))
		if err != nil { // it was read; as it came, the client will judge it
			now.sent, now.version = &sent{i, 0}, i.version
		} else {
			now.wire = wire
		}
	}
	now.stamp.Store(stamp)
	i.rendered.Store(now)
	return now
}

// renew starts the lease of an assignment and the life of a resource again: the control plane has
// sent it to a node.
func (i *item) renew(now time.Time) {
	i.lease.renew(now, i.body.lease)
	i.life.renew(now, i.ttl)
}

// stale reports whether its lease or its life is over. An Envoy takes less than a millisecond for no
// lease, which never ends.
func (i *item) stale(now time.Time) bool {
	lease, leased := i.lease.remaining(now)
	life, expires := i.life.remaining(now)
	return leased && lease <= 0 || expires && life <= 0
}

// own returns a rendering for hdsd's own responses: with the rest of its lease and of its life.
func (i *item) own(r *rendering, now time.Time) []byte {
	lease, leased := i.lease.remaining(now)
	life, expires := i.life.remaining(now)
	if !leased && !expires && i.ttl == 0 {
		return r.wire
	}
	u, err := message.ParseUnit(i.delta, r.wire)
	if err != nil {
		return r.wire // it was read: this does not happen
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

// with returns an item with a change as clients have it.
func (i *item) with(change uint64) *sent {
	if r := i.rendered.Load(); r != nil && r.sent.change == change {
		return r.sent
	}
	return &sent{i, change}
}

// versionOf is the version in a rendering: state of the world has one for all resources.
func (i *item) versionOf(r *rendering) string {
	if i.delta {
		return r.version
	}
	return i.version
}

// take returns a resource of a response as nodes are given it, with one more reference; nil if
// it has no body or no name. The moment is for await; 0: hdsd's core knows the resource.
func (s *stock) take(k kind, delta bool, wire []byte) (i *item, moment uint64, err error) {
	hash := maphash.Bytes(seed, wire)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i = s.known(k, delta, wire, hash); i != nil {
		i.refs.Add(1)
		return i, s.pending(i.body), nil
	}
	s.mu.Unlock()
	i, err = s.fresh(k, delta, wire, hash) // decoding takes time
	s.mu.Lock()
	if err != nil || i == nil {
		return nil, 0, err
	}
	if other := s.known(k, delta, wire, hash); other != nil {
		i = other
	} else {
		i.body = s.place(i.body)
		s.join(i)
	}
	i.refs.Add(1)
	return i, s.pending(i.body), nil
}

// as returns an item for nodes with a panel, with one more reference. The caller has one of i.
func (s *stock) as(i *item, p *panel) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := slices.IndexFunc(s.items[i.hash], func(other *item) bool {
		return other.like(i) && other.delta == i.delta && other.panel.is(p)
	})
	var now *item
	if index >= 0 {
		now = s.items[i.hash][index]
	} else {
		now = &item{body: i.body, wire: i.wire, hash: i.hash, delta: i.delta, version: i.version, wrapped: i.wrapped, ttl: i.ttl, panel: p}
		now.lease.end.Store(i.lease.end.Load())
		now.life.end.Store(i.life.end.Load())
		s.join(now)
	}
	now.refs.Add(1)
	return now
}

// join adds an item.
func (s *stock) join(i *item) {
	s.items[i.hash] = append(s.items[i.hash], i)
	if x := i.body; x.count(i.panel, 1) && x.items > 1 {
		s.spread(x)
	}
}

// leave removes an item, and its resource with the last one.
func (s *stock) leave(i *item) {
	without(s.items, i.hash, i)
	switch x := i.body; {
	case x.count(i.panel, -1) && x.items > 0:
		s.spread(x)
	case x.items == 0:
		s.remove(x)
	}
}

// spread notes that nodes with other panels have a resource now.
func (s *stock) spread(x *body) {
	s.dirty[subject{x.kind, x.name}] = true
	s.wakeUp()
}

// known returns an item of a resource; nil: there is none.
func (s *stock) known(k kind, delta bool, wire []byte, hash uint64) *item {
	for _, i := range s.items[hash] {
		if i.body.kind == k && i.delta == delta && bytes.Equal(i.wire, wire) {
			return i
		}
	}
	return nil
}

// fresh makes an item; nil if the resource has no body or no name.
func (s *stock) fresh(k kind, delta bool, wire []byte, hash uint64) (*item, error) {
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
	i.body = s.find(identityOf(k, u.Name, u.Body), k, u.Name, u.Body)
	s.mu.Unlock()
	if i.body == nil {
		i.body = newBody(k, u.Name, u.Body, s.maxEndpoints)
		i.body.remembered = k == clusters && s.remembers(u.Name, i.body.group)
	}
	return i, nil
}

// place adds a body to the stock, and returns the one that is there if there is.
func (s *stock) place(x *body) *body {
	if other := s.find(x.identity, x.kind, x.name, x.wire); other != nil {
		return other
	}
	s.add(x)
	return x
}

// pending returns the moment to await before hdsd's core knows a resource; 0: it does.
func (s *stock) pending(x *body) uint64 {
	if x.moment <= s.applied {
		return 0
	}
	return x.moment
}

// hold returns what a client is sent with one more reference; nil is none. The caller has one.
func hold(s *sent) *sent {
	if s != nil {
		s.item.refs.Add(1)
	}
	return s
}

// unhold gives references back; nil is none.
func (s *stock) unhold(all ...*sent) {
	for _, one := range all {
		if one != nil {
			s.release(one.item)
		}
	}
}

// release gives references back; nil is none.
func (s *stock) release(all ...*item) {
	for _, i := range all {
		if i != nil && i.refs.Add(-1) == 0 {
			s.drop(i)
		}
	}
}

// drop removes an item, unless it was taken again meanwhile.
func (s *stock) drop(i *item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.gone || i.refs.Load() > 0 {
		return
	}
	i.gone = true
	s.leave(i)
}
