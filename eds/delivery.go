package eds

import (
	"cmp"
	"time"
)

// delivery is what a client was sent, and how it answered. It alone sets the state,
// versions and failure of a watch. It is guarded by the subscription's lock.
type delivery struct {
	waiting   bool      // a response is outstanding
	nonce     string    // of the latest response
	inFlight  []sending // what was in it
	lastAck   time.Time // zero: there was none
	lastError string    // of the latest refusal
	refused   int       // bytes of refused frames that are kept
	failures  int       // watches with a failure
}

// sending is a resource on its way to a client; the frame is nil of a removal.
type sending struct {
	watch *watch
	frame *frame
	had   uint64 // the version that the client had before; 0: none
	index int32  // among the resources of the response; unlisted: it is not among them
}

// unlisted is the index of what is in a response without being one of its resources.
const unlisted = -1

// failure is a client's refusal of one resource.
type failure struct {
	frame   *frame // nil of a removal, or where too much was refused to keep it
	version uint64
	text    string
	at      time.Time
	had     uint64 // what the client has instead; 0: nothing
}

// begin makes a response the outstanding one.
func (d *delivery) begin(nonce string, sent []sending) {
	d.waiting, d.nonce, d.inFlight = true, nonce, sent
}

// add notes what has an index in the response that is being made.
func (d *delivery) add(w *watch, f *frame, at int64, index int32) sending {
	s := sending{watch: w, frame: f, had: w.has(), index: index}
	w.sent, w.sentAt, w.state = versionOf(f), at, pending
	return s
}

// stale tells whether a nonce is of a response older than the latest, and the
// latest has been answered.
func (d *delivery) stale(nonce string) bool {
	return nonce != "" && d.nonce != "" && nonce != d.nonce && !d.waiting
}

// answer takes in an ACK, or a NACK with a refusal. Only an answer with the outstanding
// response's nonce counts; current tells whether it has that. Where the refusal names some
// resources, the client took the others. Frames of refused resources are kept up to a number of
// bytes.
func (d *delivery) answer(nonce string, refusal *refusal, now time.Time, bytes int) (sent []sending, current bool) {
	if nonce != d.nonce || !d.waiting {
		return nil, false
	}
	sent = d.inFlight
	d.waiting, d.inFlight = false, nil
	if refusal != nil {
		d.lastError = refusal.text
	} else {
		d.lastAck = now
	}
	for _, s := range sent {
		if !refusal.has(s.index) {
			s.watch.state, s.watch.holds = accepted, s.frame != nil
			d.clearFailure(s.watch)
			continue
		}
		s.watch.state = refused
		d.setFailure(s.watch, &failure{frame: s.frame, version: versionOf(s.frame), text: refusal.text, at: now, had: s.had}, bytes)
	}
	return sent, true
}

func (d *delivery) setFailure(w *watch, f *failure, bytes int) {
	d.clearFailure(w)
	if d.refused+f.frame.size() > bytes {
		f.frame = nil
	}
	d.refused += f.frame.size()
	w.failure = f
	d.failures++
}

func (d *delivery) clearFailure(w *watch) {
	if w.failure != nil {
		d.refused -= w.failure.frame.size()
		w.failure = nil
		d.failures--
	}
}

// resume notes which version a client says it has from an earlier stream.
func (d *delivery) resume(w *watch, version uint64) {
	w.sent = cmp.Or(version, foreign)
	w.holds = true
}

// remember notes a version that the client will have when it reads what is under way:
// it may have to learn that the resource is gone.
func (d *delivery) remember(w *watch, version uint64) { w.sent = cmp.Or(w.sent, version) }

// underWay returns the frames of the outstanding response.
func (d *delivery) underWay() map[*watch]*frame {
	frames := make(map[*watch]*frame, len(d.inFlight))
	for _, s := range d.inFlight {
		frames[s.watch] = s.frame
	}
	return frames
}

// unsubscribed returns the versions of resources that are under way although the client
// has unsubscribed from them.
func (d *delivery) unsubscribed() map[string]uint64 {
	var versions map[string]uint64
	for _, s := range d.inFlight {
		if w := s.watch; w.closed && w.sent != 0 {
			if versions == nil {
				versions = make(map[string]uint64)
			}
			versions[w.key()] = w.sent
		}
	}
	return versions
}

func versionOf(f *frame) uint64 {
	if f == nil {
		return 0
	}
	return f.version
}
