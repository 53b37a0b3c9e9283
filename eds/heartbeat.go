package eds

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// beats is the number of heartbeats within a time to live.
const beats = 3

// heartbeat keeps the resources of a client from expiring. It is guarded by the
// subscription's lock.
type heartbeat struct {
	ttl   time.Duration // of each resource that is sent; 0: none
	timer *time.Timer   // nil without a ttl
	due   bool
	ended bool
	left  []*watch // the rest of a heartbeat that takes several responses
}

// lifetime returns how long a client keeps resources; 0: for ever, also if it does not
// understand a ttl. Envoys (1.36.4, 1.40.0) do not live with every ttl of an assignment by state
// of the world, so they get none.
func (t *table) lifetime(client *features, delta bool) time.Duration {
	if !client.ttl || !delta && (!client.wrapped || client.envoy && !t.whole) {
		return 0
	}
	return t.ttl
}

// expiring marks the versions of resources with a ttl. A client that reconnects after the
// type has lost its ttl then gets them again without one, which ends its timers.
const expiring = 0x7474_6c74_746c_7474

// shown converts between versions of frames and those that the client sees.
func (h *heartbeat) shown(version uint64) uint64 {
	if h.ttl == 0 || version == 0 || version == foreign {
		return version
	}
	return version ^ expiring
}

// start makes a heartbeat due from time to time, and then calls wake. The lock is the
// subscription's.
func (h *heartbeat) start(lock sync.Locker, wake func()) {
	lock.Lock()
	defer lock.Unlock()
	h.timer = time.AfterFunc(h.ttl/beats, func() {
		lock.Lock()
		defer lock.Unlock()
		if h.ended {
			return
		}
		h.due = true
		h.timer.Reset(h.ttl / beats)
		wake()
	})
}

func (h *heartbeat) stop() {
	h.ended = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// hasten makes a heartbeat due at once if there is a ttl.
func (h *heartbeat) hasten() { h.due = h.ttl > 0 }

// pending reports whether a heartbeat, or the rest of one, is due.
func (h *heartbeat) pending() bool { return h.due || len(h.left) > 0 }

// consumeDue reports whether a heartbeat is due, and clears that.
func (h *heartbeat) consumeDue() bool {
	due := h.due
	h.due = false
	return due
}

// pop returns the next watch of a started heartbeat.
func (h *heartbeat) pop() (*watch, bool) {
	if len(h.left) == 0 {
		h.left = nil
		return nil, false
	}
	w := h.left[0]
	h.left = h.left[1:]
	return w, true
}

// hastenHeartbeat handles a client with resources from an earlier stream, which may expire at
// any moment.
func (u *subscription) hastenHeartbeat() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.beat.hasten()
}

// renew queues every resource of a state-of-the-world client when a heartbeat is due. The
// protocol allows a heartbeat without bodies, but Envoy takes such a Cluster response for one
// without clusters, and such an assignment response prolongs nothing.
func (u *subscription) renew() {
	if u.beat.ttl == 0 || u.delta {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.delivery.waiting || !u.beat.consumeDue() {
		return
	}
	watches := u.interest.list()
	slices.SortFunc(watches, byKey) // so that the version depends on the content alone
	for _, w := range watches {
		if w.state != refused && w.heldVersion() != 0 {
			u.queue.force(w)
		}
	}
}

func byKey(a, b *watch) int { return strings.Compare(a.key(), b.key()) }

// heartbeat returns a response, if one is due, that names each resource and the version
// that the client has, without a body, so that the client keeps it.
func (u *subscription) heartbeat(nonce func() string, limit int) *response {
	if u.beat.ttl == 0 || !u.delta {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.delivery.waiting || u.paused {
		return nil
	}
	if len(u.beat.left) == 0 && u.beat.consumeDue() {
		u.beat.left = u.interest.list()
	}
	r := newResponse()
	for len(r.parts) < maxResources && r.size < limit {
		w, ok := u.beat.pop()
		if !ok {
			break
		}
		if version := w.heldVersion(); version != 0 && !w.closed {
			r.addFormed(form{slot: w.slot, version: u.beat.shown(version), ttl: u.beat.ttl, located: w.located}, nil)
			r.count(w.key(), version)
		}
	}
	if r.empty() {
		return nil
	}
	u.delivery.begin(nonce(), nil)
	r.finish(u.table.typeURL, true, u.delivery.nonce, u.stream.server.identifier)
	return r
}
