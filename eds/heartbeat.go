package eds

import (
	"slices"
	"strings"
	"time"
)

// Beats that a client is sent within the time it is told to keep a resource.
const beats = 3

// pulse keeps what a client has from expiring. It is guarded by the
// subscription's lock.
type pulse struct {
	timer *time.Timer // nil where nothing expires
	due   bool
	ended bool
	left  []*watch // of a heartbeat that takes several responses
}

// lifetime is what a client is told to keep resources for; 0: for ever, as where
// it does not heed it. Envoy (1.36.4, 1.40.0) dies by a segmentation fault when an
// assignment expires that it has by state of the world.
func (t *table) lifetime(says features, delta bool) time.Duration {
	if !says.ttl || !delta && (!says.wrapped || says.envoy && !t.whole) {
		return 0
	}
	return t.ttl
}

// expiring marks the versions of resources with a ttl. So a client that comes back
// when the type has a ttl no more is sent them without, which ends its timers.
const expiring = 0x7474_6c74_746c_7474

// shown gives the version that the client is told, or means by what it tells.
func (u *subscription) shown(version uint64) uint64 {
	if u.ttl == 0 || version == 0 || version == foreign {
		return version
	}
	return version ^ expiring
}

func (u *subscription) startPulse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pulse.timer = time.AfterFunc(u.ttl/beats, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.pulse.ended {
			return
		}
		u.pulse.due = true
		u.pulse.timer.Reset(u.ttl / beats)
		u.stream.wakeUp()
	})
}

func (u *subscription) stopPulse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pulse.ended = true
	if u.pulse.timer != nil {
		u.pulse.timer.Stop()
	}
}

// beatSoon is for a client that comes with resources from an earlier stream.
func (u *subscription) beatSoon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pulse.due = u.ttl > 0
}

// renew makes everything that a state-of-the-world client has be sent again when
// a heartbeat is due. A heartbeat without a body would do by the protocol, but
// Envoy takes a Cluster response without bodies for one without clusters, and
// does not prolong anything by one of assignments.
func (u *subscription) renew() {
	if u.ttl == 0 || u.delta {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.pulse.due || u.waiting {
		return
	}
	u.pulse.due = false
	all := u.allLocked()
	slices.SortFunc(all, byKey) // so that the response has the version of one with the same in it
	for _, w := range all {
		if w.state != refused && w.has() != 0 {
			w.force = true
			u.enqueue(w)
		}
	}
}

func byKey(a, b *watch) int { return strings.Compare(a.key(), b.key()) }

// heartbeat gives a response that says of each resource, without its body, that
// the version that the client has is to be kept, if that is due.
func (u *subscription) heartbeat(nonce func() string, limit int) *response {
	if u.ttl == 0 || !u.delta {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting || u.held {
		return nil
	}
	if u.pulse.due && len(u.pulse.left) == 0 {
		u.pulse.due, u.pulse.left = false, u.allLocked()
	}
	r := newResponse()
	for len(u.pulse.left) > 0 && len(r.parts) < maxResources && r.size < limit {
		w := u.pulse.left[0]
		u.pulse.left = u.pulse.left[1:]
		if version := w.has(); version != 0 && !w.closed {
			r.addFormed(form{slot: w.slot, version: u.shown(version), ttl: u.ttl, located: w.located}, nil)
			r.count(w.key(), version)
		}
	}
	if len(u.pulse.left) == 0 {
		u.pulse.left = nil
	}
	if r.empty() {
		return nil
	}
	u.waiting, u.inFlight, u.nonce = true, nil, nonce()
	r.finish(u.table.typeURL, true, u.nonce, u.stream.server.identifier)
	return r
}

// has gives the version that the client is known to have, 0 where that is none,
// or not known as long as it has not answered.
func (w *watch) has() uint64 {
	switch {
	case w.state == refused && w.failure != nil:
		return w.failure.had
	case w.state == pending || w.state == refused || !w.holds || w.sent == foreign:
		return 0
	}
	return w.sent
}
