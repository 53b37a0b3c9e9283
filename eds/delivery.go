package eds

import (
	"cmp"
	"time"
)

// delivery records the responses to a client, and its answers. It alone sets the state, versions
// and failure of a watch. It is guarded by the subscription's lock.
type delivery struct {
	waiting   bool      // a response is outstanding
	nonce     string    // of the latest response
	inFlight  []sending // content of the latest response
	lastAck   time.Time // zero without one
	lastError string    // of the latest refusal
	refused   int       // kept bytes of refused frames
	failures  int       // watches with a failure
}

// sending is a resource being sent to a client; a removal has no frame.
type sending struct {
	watch    *watch
	frame    *frame
	previous uint64 // the client's previous version; 0: none
	index    int32  // among the resources of the response, or unlisted
}

// unlisted is the index of changes that are not among a response's resources.
const unlisted = -1

// failure is a client's refusal of one resource.
type failure struct {
	frame   *frame // nil for a removal, or if too much was refused to keep it
	version uint64
	text    string
	time    time.Time
	held    uint64 // the client's version instead; 0: none
}

// begin makes a response the outstanding one.
func (d *delivery) begin(nonce string, sendings []sending) {
	d.waiting, d.nonce, d.inFlight = true, nonce, sendings
}

// add records an entry of the response in the making.
func (d *delivery) add(w *watch, f *frame, now int64, index int32) sending {
	s := sending{watch: w, frame: f, previous: w.heldVersion(), index: index}
	w.sent, w.sentAt, w.state = versionOf(f), now, pending
	return s
}

// stale reports whether a nonce is of a response older than the latest, and the latest has been
// answered.
func (d *delivery) stale(nonce string) bool {
	return nonce != "" && d.nonce != "" && nonce != d.nonce && !d.waiting
}

// answer handles an ACK, or a NACK with a refusal. Only an answer with the outstanding
// response's nonce counts; current reports whether it has that. If the refusal names some
// resources, the client accepted the others. Frames of refused resources are kept up to a number
// of bytes.
func (d *delivery) answer(nonce string, refusal *refusal, now time.Time, bytes int) (sendings []sending, current bool) {
	if nonce != d.nonce || !d.waiting {
		return nil, false
	}
	sendings = d.inFlight
	d.waiting, d.inFlight = false, nil
	if refusal != nil {
		d.lastError = refusal.text
	} else {
		d.lastAck = now
	}
	for _, s := range sendings {
		if !refusal.includes(s.index) {
			s.watch.state, s.watch.holds = accepted, s.frame != nil
			s.watch.take(s.frame, now)
			d.clearFailure(s.watch)
			continue
		}
		s.watch.state = refused
		d.setFailure(s.watch, &failure{frame: s.frame, version: versionOf(s.frame), text: refusal.text, time: now, held: s.previous}, bytes)
	}
	return sendings, true
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

// resume records the version that a client claims to have from an earlier stream.
func (d *delivery) resume(w *watch, version uint64) {
	w.sent = cmp.Or(version, foreign)
	w.holds = true
}

// remember records a version that the client will have after the outstanding response: it may
// have to learn that the resource no longer exists.
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
