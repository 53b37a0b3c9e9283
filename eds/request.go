package eds

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/eds/poll"
)

// wildcard is the name that stands for all resources of a type.
const wildcard = "*"

// foreign stands for a version that is not one of hdsd's.
const foreign = math.MaxUint64

// request is a request of either kind.
type request struct {
	node    *corev3.Node
	typeURL string
	nonce   string
	refusal *refusal // of the response of that nonce; nil for an ACK
	names   []string
	key     string // the names on the wire, if they may make a group; else empty

	// Of state-of-the-world requests.
	span    span   // of the names on the wire
	list    uint64 // hash of the names; 0: not known yet
	repeats bool   // the names are those of the latest request, and omitted

	// Of delta requests.
	unsubscribe []string
	versions    map[string]string
}

// requests processes the requests of a subscription. It belongs to the receiving
// goroutine.
type requests struct {
	sub    *subscription
	begun  bool   // there was a request
	legacy bool   // no request had a name so far: all resources are meant
	list   uint64 // hash of the names in the latest state-of-the-world request
	names  span   // of the same names on the wire
}

// process handles a request. Nothing is sent until its end.
func (q *requests) process(r *request) error {
	q.sub.pause()
	defer q.sub.unpause()
	if q.sub.delta {
		return q.processDelta(r)
	}
	return q.processState(r)
}

// processState handles a state-of-the-world request. One with a stale nonce gets no response.
// While a response is outstanding, its names count nevertheless: a name that is dropped and
// added again meanwhile has to be sent again, and the answer to that response would not show it.
func (q *requests) processState(r *request) error {
	u := q.sub
	if u.stale(r.nonce) {
		return nil
	}
	u.acknowledge(r)
	if r.repeats {
		return nil // the usual ACK
	}
	q.names = r.span
	list := r.list
	if list == 0 {
		list = poll.Hash(r.names)
	}
	if q.begun && list == q.list {
		return nil
	}
	first := !q.begun
	q.begun, q.list = true, list

	if first && q.joins(r) {
		q.legacy = false
		q.names.key = r.key
		return nil
	}
	if q.legacy && len(r.names) == 0 {
		u.subscribeAll(false)
		u.requireAnswer()
		return nil
	}
	q.legacy = false
	return u.replaceNames(r.names, first)
}

// processDelta handles a delta request. Its subscriptions count whatever its nonce.
func (q *requests) processDelta(r *request) error {
	u := q.sub
	u.acknowledge(r)
	first := !q.begun
	q.begun = true

	if first && q.joins(r) {
		q.legacy = false
		if len(r.versions) == 0 {
			return nil
		}
		return q.resume(r.versions)
	}
	if q.legacy && len(r.names) == 0 {
		if first {
			u.subscribeAll(false)
		}
	} else {
		q.legacy = false
		if err := u.changeNames(r.names, r.unsubscribe, first); err != nil {
			return err
		}
	}
	switch {
	case !first:
		return nil
	case len(r.versions) > 0:
		return q.resume(r.versions)
	case u.subscribesAll():
		u.requireAnswer()
	}
	return nil
}

// resume handles the versions that the client has from an earlier stream.
func (q *requests) resume(versions map[string]string) error {
	u := q.sub
	u.hastenHeartbeat()
	if !u.interest.resume(u, versions) {
		if err := u.resumeVersions(versions); err != nil {
			return err
		}
	}
	if u.table.whole {
		u.stream.server.unasked.expect(askWithin)
	} else {
		u.warm(u.stream.servicesSent())
	}
	return nil
}

// joins makes the subscription of a first request a member of a group, and reports whether it
// did. Clients with a form of their own join none.
func (q *requests) joins(r *request) bool {
	u := q.sub
	if r.key == "" || u.table.whole || u.choice != "" || u.beat.ttl > 0 || u.gRPC || !u.stream.permitted.All() || len(r.unsubscribe) > 0 {
		return false
	}
	// The limits are enforced when names are watched one by one.
	return u.stream.server.limiter.limits().check(len(r.names), len(r.key)) == nil && u.table.join(u, r.key, r.names)
}

// replaceNames makes these names the only requested ones.
func (u *subscription) replaceNames(names []string, first bool) error {
	wanted := make(map[string]struct{}, len(names))
	for _, name := range names {
		wanted[name] = struct{}{}
	}
	_, allNames := wanted[wildcard]
	delete(wanted, wildcard)
	u.expect(len(wanted))
	u.mu.Lock()
	added := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == wildcard || u.interest.names(name) })
	underWay := u.delivery.unsubscribed()
	u.mu.Unlock()
	for _, name := range added {
		w, err := u.subscribe(name)
		if err != nil {
			return err
		}
		u.remember(w, underWay[name])
		u.resend(w)
	}
	news := len(added) > 0
	if !allNames {
		u.unsubscribeAll()
	} else if !u.subscribesAll() {
		u.subscribeAll(false)
		news = true
	}
	u.mu.Lock()
	unwanted := u.interest.unwanted(wanted)
	u.mu.Unlock()
	for _, name := range unwanted {
		u.unsubscribe(name)
	}
	if news && (u.table.whole || allNames && first) {
		u.requireAnswer()
	}
	return nil
}

// changeNames subscribes, which always sends the resource, and then unsubscribes.
func (u *subscription) changeNames(names, unsubscribe []string, first bool) error {
	u.expect(len(names))
	for _, name := range names {
		if name == wildcard {
			u.subscribeAll(!first)
			u.requireAnswer()
			continue
		}
		w, err := u.subscribe(name)
		if err != nil {
			return err
		}
		u.resend(w)
	}
	for _, name := range unsubscribe {
		if name == wildcard {
			u.unsubscribeAll()
		} else {
			u.unsubscribe(name)
		}
	}
	return nil
}

// resumeVersions records the client's resources from an earlier stream. Equal ones are not sent,
// and missing ones are sent as removed.
func (u *subscription) resumeVersions(versions map[string]string) error {
	unknown, allNames := 0, u.subscribesAll()
	u.mu.Lock()
	located := u.interest.locatedByName()
	u.mu.Unlock()
	for name, text := range versions {
		u.mu.Lock()
		w := cmp.Or(u.interest.find(u, name), located[name])
		u.mu.Unlock()
		if w == nil && !allNames {
			continue
		}
		if w == nil {
			unknown++
			if err := u.stream.server.limiter.limits().check(unknown, 0); err != nil {
				return err
			}
			w = u.watch(name)
		}
		for !u.resumeVersion(w, parseVersion(text)) { // the resource was removed just now
			w = u.watch(name)
		}
	}
	return nil
}

// resumeVersion records the client's version of a resource. It reports whether the watch has not
// ended.
func (u *subscription) resumeVersion(w *watch, version uint64) bool {
	f := w.current()
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.closed {
		return false
	}
	u.delivery.resume(w, u.beat.shown(version))
	if versionOf(f) == w.sent {
		w.take(f, time.Now())
	}
	w.force = false
	u.queue.push(w)
	return true
}
