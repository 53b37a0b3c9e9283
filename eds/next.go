package eds

import (
	"slices"
	"time"

	"hdsd/envoy/fields"
)

const (
	// maxResources bounds the resources of one response of changes, and thereby the time for
	// which a subscription is locked.
	maxResources = 1024
	// partOfAll is the part of all watches that a response of changes may hold, if that is more:
	// by state of the world, each ACK names everything.
	partOfAll = 16
)

// next makes the subscription's next response, or returns nil.
func (u *subscription) next(nonce func() string, limit int) *response {
	u.renew()
	if r := u.interest.next(u, nonce, limit); r != nil {
		return r
	}
	for {
		incomplete := u.stream.server.published.incomplete.Load() // read before the resources are
		batch, ok := u.nextWatches(incomplete)
		if !ok {
			return u.heartbeat(nonce, limit)
		}
		var room [8]*frame
		frames := slices.Grow(room[:0], len(batch))
		for _, w := range batch {
			frames = append(frames, w.current())
		}
		b := builder{sub: u, limit: limit, incomplete: incomplete}
		r, more := u.build(&b, batch, frames, nonce)
		for _, w := range b.idle {
			u.table.unwatch(w, w.idle)
		}
		if r != nil {
			return r
		}
		if !more {
			return u.heartbeat(nonce, limit)
		}
	}
}

// idle reports, under the locks of slot and subscription, whether nothing is left to watch. The
// resource may have come back after its removal was sent.
func (w *watch) idle() bool { return !w.named && !w.queued && !w.present() }

// nextWatches returns the watches of the next response. A resource that changes afterwards is
// queued again. A response that has to hold everything waits until everything is known.
func (u *subscription) nextWatches(incomplete bool) ([]*watch, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	queued := u.queue.len()
	if u.delivery.waiting || u.paused || queued == 0 && (!u.answer || incomplete) || u.whole() && incomplete {
		return nil, false
	}
	if !u.whole() {
		return u.queue.pop(min(queued, max(maxResources, u.interest.size()/partOfAll))), true
	}
	u.queue.pop(queued)
	watches := u.interest.list()
	slices.SortFunc(watches, byKey)
	return watches, true
}

// build makes a response of the resources in a batch that the client lacks, and records them as
// sent. It also reports whether another batch may be due.
func (u *subscription) build(b *builder, batch []*watch, frames []*frame, nonce func() string) (r *response, more bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r = newResponse()
	r.parts = slices.Grow(r.parts, len(batch)+1) // 1 for the tail
	b.response, b.now, b.sendings = r, time.Now().UnixNano(), slices.Grow(r.sentRoom[:0], len(batch))
	r.oldest = u.queue.resetOldest()
	if u.whole() {
		b.addAll(batch, frames)
	} else {
		b.addChanges(batch, frames)
	}
	if !b.nonEmpty && (!u.answer || b.incomplete) {
		return nil, u.queue.len() > 0
	}
	if r.empty() && !u.whole() && u.queue.len() > 0 {
		return nil, true // the answer will be in a later batch
	}
	u.answer = false
	u.delivery.begin(nonce(), b.sendings)
	r.finish(u.table.typeURL, u.delta, u.delivery.nonce, u.stream.server.identifier)
	return r, false
}

// builder fills one response, under the subscription's lock.
type builder struct {
	sub        *subscription
	response   *response
	now        int64 // the time, in Unix nanoseconds
	limit      int   // bytes
	incomplete bool  // unpublished resources may exist

	resources int32 // number of resources in the response
	sendings  []sending
	nonEmpty  bool     // the response is not empty
	idle      []*watch // watches with nothing left to watch
}

// addAll adds every resource if one of them is new to the client.
func (b *builder) addAll(batch []*watch, frames []*frame) {
	b.nonEmpty = b.sub.answer
	for i, w := range batch {
		b.nonEmpty = b.nonEmpty || !w.closed && (w.force && frames[i] != nil || versionOf(frames[i]) != w.sent)
	}
	if !b.nonEmpty {
		return
	}
	for i, w := range batch {
		if w.closed {
			continue
		}
		f := frames[i]
		index := int32(unlisted)
		if f != nil {
			index = b.put(w, f)
		} else if !w.named {
			b.idle = append(b.idle, w)
		} else {
			b.miss(w)
		}
		b.note(w, f, index)
	}
}

// addChanges adds resources that are new to the client, up to the limit; the rest returns to the
// front of the queue.
func (b *builder) addChanges(batch []*watch, frames []*frame) {
	for i, w := range batch {
		f := frames[i]
		if w.closed {
			continue
		}
		if !b.response.empty() && b.response.size+f.size() > b.limit {
			b.sub.queue.putBack(batch[i:])
			break
		}
		if w.withheld = f == nil && b.incomplete; w.withheld {
			continue
		}
		if f != nil {
			b.addChange(w, f)
		} else {
			b.addAbsence(w)
		}
		w.force = false
	}
	if b.nonEmpty = len(b.sendings) > 0; !b.nonEmpty {
		b.sendings = nil
	}
	if b.incomplete && !b.sub.stream.server.published.incomplete.Load() {
		b.sub.requeueWithheldLocked() // Complete was called before they were withheld
	}
}

func (b *builder) addChange(w *watch, f *frame) {
	if w.force || f.version != w.sent {
		b.note(w, f, b.put(w, f))
	}
}

// addAbsence reports that a resource does not exist: by delta as removed, by state of the world
// with an empty assignment. gRPC's clients also get an error, which they do not read by default.
func (b *builder) addAbsence(w *watch) {
	u := b.sub
	switch {
	case u.delta && (w.force || w.sent != 0):
		b.response.remove(w)
		b.miss(w)
		b.note(w, nil, unlisted)
	case !u.delta && (w.sent != 0 || w.force && w.named):
		index := b.put(w, newFrame(u.table.typeURL, w.slot.name, fields.AppendBytes(nil, fields.Name, w.slot.name)))
		b.miss(w)
		b.note(w, nil, index)
	}
	if !w.named {
		b.idle = append(b.idle, w)
	}
}

// note records an entry of the response as sent.
func (b *builder) note(w *watch, f *frame, index int32) {
	u := b.sub
	if f != nil && f.service != "" && w.sent != f.version {
		u.warming = append(u.warming, f.service)
	}
	w.force = false
	b.sendings = append(b.sendings, u.delivery.add(w, f, b.now, index))
}
