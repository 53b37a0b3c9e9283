package eds

import (
	"slices"
	"time"
)

const (
	// Most resources that one response of changes holds; it bounds how long a
	// subscription is locked to make one.
	maxResources = 1024
	// A response of changes may hold this part of all that is watched, where that
	// is more: by state of the world, each of its acknowledgements names all.
	partOfAll = 16
)

// next makes the subscription's next response, nil where nothing is to be said
// now.
func (u *subscription) next(nonce func() string, limit int) *response {
	u.renew()
	for {
		incomplete := u.stream.server.incomplete.Load() // before it is seen what there is
		batch, ok := u.take(incomplete)
		if !ok {
			return u.heartbeat(nonce, limit)
		}
		var room [8]*frame
		frames := room[:0]
		for _, w := range batch {
			frames = append(frames, w.slot.current())
		}
		r, gone, more := u.commit(batch, frames, nonce, limit, incomplete)
		for _, w := range gone {
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

// idle tells, under the locks of slot and subscription, whether there is nothing
// left to watch: the resource may have come back since the client was told.
func (w *watch) idle() bool { return !w.named && !w.queued && !w.slot.present() }

// take gives the watches that the next response is about. What changes after
// it is marked anew. A response that has to hold everything waits until
// everything is known.
func (u *subscription) take(incomplete bool) ([]*watch, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting || u.held || len(u.dirty) == 0 && (!u.answer || incomplete) || u.whole() && incomplete {
		return nil, false
	}
	n := min(len(u.dirty), max(maxResources, len(u.watches)/partOfAll))
	if u.whole() {
		n = len(u.dirty)
	}
	batch := u.dirty[:n:n]
	if u.dirty = u.dirty[n:]; len(u.dirty) == 0 {
		u.dirty = nil
	}
	for _, w := range batch {
		w.queued = false
		if w.closed {
			u.closed--
		}
	}
	if u.whole() {
		batch = u.allLocked()
		slices.SortFunc(batch, byKey)
	}
	return batch, true
}

// whole tells whether a response has to hold everything that is watched.
func (u *subscription) whole() bool { return u.table.whole && !u.delta }

// commit decides what of the batch is sent and notes it as sent. It also gives
// the watches that have nothing left to watch, and whether another batch may
// be due.
func (u *subscription) commit(batch []*watch, frames []*frame, nonce func() string, limit int, incomplete bool) (r *response, gone []*watch, more bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r = newResponse()
	if r.since = u.since; len(u.dirty) == 0 {
		u.since = 0
	}
	at := time.Now().UnixNano()
	var sent []sending
	if u.whole() {
		sent, gone = u.addAll(r, batch, frames, at)
	} else {
		sent, gone = u.addChanges(r, batch, frames, at, limit, incomplete)
	}
	if sent == nil && (!u.answer || incomplete) {
		return nil, gone, len(u.dirty) > 0
	}
	if r.empty() && !u.whole() && len(u.dirty) > 0 {
		return nil, gone, true // the answer will be in a later batch
	}
	u.answer = false
	u.waiting = true
	u.inFlight = sent
	u.nonce = nonce()
	r.finish(u.table.typeURL, u.delta, u.nonce, u.stream.server.identifier)
	return r, gone, false
}

// addAll adds every resource if one of them is news to the client; sent is nil
// if none is.
func (u *subscription) addAll(r *response, batch []*watch, frames []*frame, at int64) (sent []sending, gone []*watch) {
	news := u.answer
	for i, w := range batch {
		news = news || !w.closed && (w.force && frames[i] != nil || versionOf(frames[i]) != w.sent)
	}
	if !news {
		return nil, nil
	}
	sent = make([]sending, 0, len(batch))
	for i, w := range batch {
		if w.closed {
			continue
		}
		f := frames[i]
		if f != nil {
			u.put(r, w, f)
		} else if !w.named {
			gone = append(gone, w)
		} else {
			u.miss(r, w)
		}
		sent = append(sent, u.noteSent(w, f, at))
	}
	return sent, gone
}

// addChanges adds what is news to the client, up to the limit; the rest goes
// back to the front of the queue.
func (u *subscription) addChanges(r *response, batch []*watch, frames []*frame, at int64, limit int, incomplete bool) (sent []sending, gone []*watch) {
	sent = r.sentRoom[:0]
	for i, w := range batch {
		f := frames[i]
		if w.closed {
			continue
		}
		if !r.empty() && r.size+f.size() > limit {
			u.putBack(batch[i:])
			break
		}
		if w.withheld = f == nil && incomplete; w.withheld {
			continue
		}
		switch {
		case f != nil && (w.force || f.version != w.sent):
			u.put(r, w, f)
			sent = append(sent, u.noteSent(w, f, at))
		case f == nil && u.delta && (w.force || w.sent != 0):
			r.remove(w)
			u.miss(r, w)
			sent = append(sent, u.noteSent(w, nil, at))
		case f == nil && (w.sent != 0 || w.force && w.named && !u.errors):
			none := newFrame(u.table.typeURL, w.slot.name, appendText(nil, assignmentName, w.slot.name))
			u.put(r, w, none)
			u.miss(r, w)
			sent = append(sent, u.noteSent(w, nil, at))
		case f == nil && w.force && u.errors && w.named:
			u.miss(r, w)
			sent = append(sent, u.noteSent(w, nil, at))
		}
		w.force = false
		if f == nil && !w.named {
			gone = append(gone, w)
		}
	}
	if len(sent) == 0 {
		return nil, gone
	}
	return sent, gone
}

func (u *subscription) noteSent(w *watch, f *frame, at int64) sending {
	s := sending{watch: w, frame: f, had: w.has()}
	if f != nil && f.service != "" && w.sent != f.version {
		u.warming = append(u.warming, f.service)
	}
	if w.asking == asked && w.sent != versionOf(f) {
		w.asking = notLooked // it may take another assignment
	}
	w.sent, w.sentAt = versionOf(f), at
	w.state = pending
	w.force = false
	return s
}

func (u *subscription) putBack(rest []*watch) {
	front := make([]*watch, 0, len(rest)+len(u.dirty))
	for _, w := range rest {
		if !w.queued && !w.closed {
			w.queued = true
			front = append(front, w)
		}
	}
	u.dirty = append(front, u.dirty...)
}

func versionOf(f *frame) uint64 {
	if f == nil {
		return 0
	}
	return f.version
}
