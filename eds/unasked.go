package eds

import (
	"slices"
	"time"
)

const (
	// askWithin is the time for a client to request the assignment of a checked cluster: the
	// cluster has neither health nor checks until then.
	askWithin = 30 * time.Second
	// checkAgain is the delay until a check may find that a client has requested it after all.
	checkAgain = time.Second
)

// asking is whether a client has requested the assignment of a cluster.
type asking uint8

const (
	unchecked asking = iota // the client has not accepted the latest cluster, or hdsd does not check it
	missing                 // the client accepted it, and had not requested the assignment by the latest check
	asked
)

// unasked lists the assignments that a client of clusters has yet to request. It costs little if
// nothing is missing: the assignment of each accepted cluster is looked up once on the same
// stream. Missing ones are looked up everywhere after askWithin. It alone sets watch.asking. The
// subscription's lock guards its fields.
type unasked struct {
	sub      *subscription
	accepted []*watch // by the present ACK
	pending  []missed
	kept     int         // their number after closed ones were last removed
	late     int         // number missing for longer than askWithin
	due      int64       // time of the next check, by publication.now; 0: none
	timer    *time.Timer // nil if nothing was ever missing
	ended    bool        // the stream has ended
}

// missed is a cluster whose assignment is missing.
type missed struct {
	watch *watch
	start int64 // by publication.now
}

// accept records that the client has a frame. It is called under the lock.
func (n *unasked) accept(w *watch, f *frame) {
	if f != nil && f.checked && w.asking == unchecked {
		n.accepted = append(n.accepted, w)
	}
}

// sending records that a frame is about to be sent. It is called under the lock.
func (n *unasked) sending(w *watch, f *frame) {
	if w.asking == asked && w.sent != versionOf(f) {
		w.asking = unchecked // it may use another assignment
	}
}

// resume records the client's clusters from an earlier stream.
func (n *unasked) resume(versions map[string]string) {
	u := n.sub
	for name := range versions {
		u.mu.Lock()
		w := u.interest.watches[name]
		u.mu.Unlock()
		if w == nil {
			continue
		}
		f := w.current()
		u.mu.Lock()
		if versionOf(f) == w.sent {
			n.accept(w, f)
		}
		u.mu.Unlock()
	}
	n.collect()
}

// collect looks for the assignments of newly accepted clusters on the same stream, and makes a
// check due for missing ones.
func (n *unasked) collect() {
	u := n.sub
	u.mu.Lock()
	accepted, late := n.accepted, n.late
	n.accepted = nil
	u.mu.Unlock()
	if len(accepted) == 0 && late == 0 {
		return
	}
	found := u.stream.asksFor(accepted)
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.stream.server.published.now()
	for i, w := range accepted {
		switch {
		case w.closed:
		case found[i]:
			w.asking = asked
		default:
			w.asking = missing
			n.pending = append(n.pending, missed{w, now})
		}
	}
	n.removeClosed()
	if n.late > 0 {
		n.checkIn(checkAgain) // some of them may be gone
	} else if len(n.pending) > 0 {
		n.checkIn(askWithin)
	}
}

// removeClosed forgets closed watches when there are many, as of a client that accepts a cluster
// and gives it up again and again. It is called under the lock.
func (n *unasked) removeClosed() {
	if len(n.pending) < 64 || len(n.pending) < 2*n.kept {
		return
	}
	n.pending = slices.DeleteFunc(n.pending, func(m missed) bool { return m.watch.closed })
	n.kept = len(n.pending)
}

// checkIn makes a check due within d. It is called under the lock.
func (n *unasked) checkIn(d time.Duration) {
	a := n.sub.stream.server.unasked
	due := n.sub.stream.server.published.now() + int64(d)
	if n.due != 0 && n.due <= due {
		return
	}
	n.due = due
	if n.timer == nil {
		n.timer = time.AfterFunc(d, func() { a.check(n) })
		a.add(n)
	} else {
		n.timer.Reset(d)
	}
}

// recheck makes a check due because the client may have requested a missing assignment.
func (n *unasked) recheck() {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	if n.late > 0 && !n.ended {
		n.checkIn(checkAgain)
	}
}

// begin begins a check, and returns its clusters.
func (n *unasked) begin() []missed {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	n.due = 0
	return slices.Clone(n.pending)
}

// finish ends a check with its results; more clusters may have been accepted meanwhile. It calls
// report with the number of late ones before and after.
func (n *unasked) finish(found map[*watch]asking, report func(before, after int)) {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	if n.ended {
		return
	}
	before, list := n.late, n.pending
	now, next := n.sub.stream.server.published.now(), int64(-1)
	n.pending, n.late, n.kept = nil, 0, 0
	for _, m := range list {
		age := now - m.start
		switch {
		case m.watch.closed || !m.watch.holds:
			continue
		case found[m.watch] == asked:
			m.watch.asking = asked
			continue
		case age < int64(askWithin):
			next = max(next, age) // the oldest is next
		case found[m.watch] == missing:
			n.late++
		case m.watch.queued || m.watch.state == pending:
			next = max(next, 0) // the client has yet to get the latest version
		default:
			m.watch.asking = unchecked // until the client subscribes to a cluster that hdsd checks again
			continue
		}
		n.pending = append(n.pending, m)
	}
	if next >= 0 {
		n.checkIn(askWithin - time.Duration(next))
	}
	report(before, n.late)
}

// count returns the number of late assignments.
func (n *unasked) count() int {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	return n.late
}

// end handles the end of the stream.
func (n *unasked) end() {
	n.sub.mu.Lock()
	active := n.timer != nil
	if active {
		n.timer.Stop()
	}
	*n = unasked{sub: n.sub, ended: true}
	n.sub.mu.Unlock()
	if active {
		n.sub.stream.server.unasked.remove(n)
	}
}
