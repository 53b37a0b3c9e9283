package eds

import (
	"cmp"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Most resources that one response of changes holds; it bounds how long a
// subscription is locked to make one.
const maxResources = 1024

// response is a message of frames that others send too, and a tail of its own.
type response struct {
	parts mem.BufferSlice
	size  int
	// removed are names to be told in removed_resources.
	removed []string
	digest  xxhash.Digest // of names and versions
	since   int64         // of the oldest change in it, by Server.now; 0: it is no change

	// Room for what most responses are: one resource, and the tail.
	partsRoom [2]mem.Buffer
	sentRoom  [1]sending
	tailRoom  [128]byte
}

// MarshalWire implements wire.Marshaler.
func (r *response) MarshalWire() (mem.BufferSlice, error) { return r.parts, nil }

func newResponse() *response {
	r := new(response)
	r.digest.Reset()
	r.parts = r.partsRoom[:0]
	return r
}

func (r *response) add(name string, version uint64, part mem.Buffer) {
	r.parts = append(r.parts, part)
	r.size += part.Len()
	r.count(name, version)
}

func (r *response) remove(name string) {
	r.removed = append(r.removed, name)
	r.size += protowire.SizeTag(deltaRemovedResources) + protowire.SizeBytes(len(name))
	r.count(name, 0)
}

func (r *response) count(name string, version uint64) {
	var text [versionDigits]byte
	putVersion(text[:], version)
	r.digest.WriteString(name)
	r.digest.Write(text[:])
}

func (r *response) empty() bool { return len(r.parts) == 0 && len(r.removed) == 0 }

// finish adds what is the receiver's own.
func (r *response) finish(typeURL string, controlPlane protowire.Number, nonce, identifier string) {
	tail := appendHead(r.tailRoom[:0], responseVersion, versionDigits)
	tail = appendVersion(tail, r.digest.Sum64())
	tail = appendText(tail, responseTypeURL, typeURL)
	tail = appendText(tail, responseNonce, nonce)
	for _, name := range r.removed {
		tail = appendText(tail, deltaRemovedResources, name)
	}
	if identifier != "" {
		size := protowire.SizeTag(controlPlaneIdentifier) + protowire.SizeBytes(len(identifier))
		tail = appendHead(tail, controlPlane, size)
		tail = appendText(tail, controlPlaneIdentifier, identifier)
	}
	r.parts = append(r.parts, mem.SliceBuffer(tail))
	r.size += len(tail)
}

// controlPlane is the number of the field control_plane.
func (u *subscription) controlPlane() protowire.Number {
	if u.delta {
		return deltaControlPlane
	}
	return sotwControlPlane
}

// next makes the subscription's next response, nil where nothing is to be said
// now.
func (u *subscription) next(nonce func() string, limit int) *response {
	for {
		batch, ok := u.take()
		if !ok {
			return nil
		}
		var room [8]*frame
		frames := room[:0]
		for _, w := range batch {
			frames = append(frames, w.slot.current())
		}
		r, gone, more := u.commit(batch, frames, nonce, limit)
		for _, w := range gone {
			u.table.unwatch(w, w.idle)
		}
		if r != nil || !more {
			return r
		}
	}
}

// idle tells, under the locks of slot and subscription, whether there is nothing
// left to watch: the resource may have come back since the client was told.
func (w *watch) idle() bool { return !w.named && !w.queued && w.slot.resource == nil }

// take gives the watches that the next response is about. What changes after
// it is marked anew.
func (u *subscription) take() ([]*watch, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting || u.held || len(u.dirty) == 0 && !u.answer {
		return nil, false
	}
	n := min(len(u.dirty), maxResources)
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
		slices.SortFunc(batch, func(a, b *watch) int { return cmp.Compare(a.slot.name, b.slot.name) })
	}
	return batch, true
}

// whole tells whether a response has to hold everything that is watched.
func (u *subscription) whole() bool { return u.table.whole && !u.delta }

// commit decides what of the batch is sent and notes it as sent. It also gives
// the watches that have nothing left to watch, and whether another batch may
// be due.
func (u *subscription) commit(batch []*watch, frames []*frame, nonce func() string, limit int) (r *response, gone []*watch, more bool) {
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
		sent, gone = u.addChanges(r, batch, frames, at, limit)
	}
	if sent == nil && !u.answer {
		return nil, gone, len(u.dirty) > 0
	}
	if r.empty() && !u.whole() && len(u.dirty) > 0 {
		return nil, gone, true // the answer will be in a later batch
	}
	u.answer = false
	u.waiting = true
	u.inFlight = sent
	u.nonce = nonce()
	r.finish(u.table.typeURL, u.controlPlane(), u.nonce, u.stream.server.identifier)
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
			r.add(w.slot.name, f.version, f.state)
		} else if !w.named {
			gone = append(gone, w)
		}
		u.noteSent(w, f, at)
		sent = append(sent, sending{w, f})
	}
	return sent, gone
}

// addChanges adds what is news to the client, up to the limit; the rest goes
// back to the front of the queue.
func (u *subscription) addChanges(r *response, batch []*watch, frames []*frame, at int64, limit int) (sent []sending, gone []*watch) {
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
		switch {
		case f != nil && (w.force || f.version != w.sent):
			if u.delta {
				r.add(w.slot.name, f.version, f.delta)
			} else {
				r.add(w.slot.name, f.version, f.state)
			}
			u.noteSent(w, f, at)
			sent = append(sent, sending{w, f})
		case f == nil && u.delta && (w.force || w.sent != 0):
			r.remove(w.slot.name)
			u.noteSent(w, nil, at)
			sent = append(sent, sending{watch: w})
		case f == nil && w.sent != 0:
			none := newFrame(u.table.typeURL, w.slot.name, appendText(nil, assignmentName, w.slot.name))
			r.add(w.slot.name, 0, none.state)
			u.noteSent(w, nil, at)
			sent = append(sent, sending{watch: w})
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

func (u *subscription) noteSent(w *watch, f *frame, at int64) {
	if f != nil && f.service != "" && w.sent != 0 && w.sent != f.version {
		u.warming = append(u.warming, f.service)
	}
	w.sent, w.sentAt = versionOf(f), at
	w.state = pending
	w.force = false
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
