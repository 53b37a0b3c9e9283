package eds

import (
	"slices"
	"time"
)

const (
	// askWithin is how long a client may take to ask for the assignment of a
	// checked cluster that it took: it has neither health nor checks until then.
	askWithin = 30 * time.Second
	// checkAgain is how soon a check finds that a client asks after all.
	checkAgain = time.Second
)

// asking says whether a client has asked for the assignment of a cluster.
type asking uint8

const (
	unchecked asking = iota // the client has not taken the latest cluster, or hdsd does not check it
	missing                 // the client took it, and had not asked by the latest check
	asked
)

// unasked lists the assignments that a client of clusters has yet to ask for. It costs
// little where nothing is missing: the assignment of each cluster that the client takes is
// looked up once on the same stream. What is not found there is looked up everywhere when
// its time is over. It alone sets watch.asking. The subscription's lock guards its fields.
type unasked struct {
	sub   *subscription
	taken []*watch // by the ACK that is being processed
	since []missed
	kept  int         // their number after closed ones were last removed
	late  int         // how many are missing for longer than askWithin
	at    int64       // when the next check is due, by publication.now; 0: none is
	timer *time.Timer // nil where nothing was ever missing
	over  bool        // the stream has ended
}

// missed is a cluster whose assignment is missing.
type missed struct {
	watch *watch
	since int64 // by publication.now
}

// accept notes that the client has a frame. It is called under the lock.
func (n *unasked) accept(w *watch, f *frame) {
	if f != nil && f.checked && w.asking == unchecked {
		n.taken = append(n.taken, w)
	}
}

// sending notes that a frame is about to be sent. It is called under the lock.
func (n *unasked) sending(w *watch, f *frame) {
	if w.asking == asked && w.sent != versionOf(f) {
		w.asking = unchecked // it may take another assignment
	}
}

// resume notes what the client has from an earlier stream.
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

// collect looks for the assignments of clusters just taken on the same stream, and makes
// a check due for the others.
func (n *unasked) collect() {
	u := n.sub
	u.mu.Lock()
	taken, late := n.taken, n.late
	n.taken = nil
	u.mu.Unlock()
	if len(taken) == 0 && late == 0 {
		return
	}
	found := u.stream.asksFor(taken)
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.stream.server.published.now()
	for i, w := range taken {
		switch {
		case w.closed:
		case found[i]:
			w.asking = asked
		default:
			w.asking = missing
			n.since = append(n.since, missed{w, now})
		}
	}
	n.removeClosed()
	if n.late > 0 {
		n.checkIn(checkAgain) // some of them may be gone
	} else if len(n.since) > 0 {
		n.checkIn(askWithin)
	}
}

// removeClosed forgets closed watches when there are many, as of a client that takes a
// cluster and gives it up again and again. It is called under the lock.
func (n *unasked) removeClosed() {
	if len(n.since) < 64 || len(n.since) < 2*n.kept {
		return
	}
	n.since = slices.DeleteFunc(n.since, func(m missed) bool { return m.watch.closed })
	n.kept = len(n.since)
}

// checkIn makes a check due within d. It is called under the lock.
func (n *unasked) checkIn(d time.Duration) {
	a := n.sub.stream.server.unasked
	at := n.sub.stream.server.published.now() + int64(d)
	if n.at != 0 && n.at <= at {
		return
	}
	n.at = at
	if n.timer == nil {
		n.timer = time.AfterFunc(d, func() { a.check(n) })
		a.add(n)
	} else {
		n.timer.Reset(d)
	}
}

// recheck makes a check due because the client may have asked for something missing.
func (n *unasked) recheck() {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	if n.late > 0 && !n.over {
		n.checkIn(checkAgain)
	}
}

// begin begins a check, and returns what it is about.
func (n *unasked) begin() []missed {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	n.at = 0
	return slices.Clone(n.since)
}

// finish ends a check with what it found; more clusters may have been taken meanwhile. It
// calls report with the number of late ones before and after.
func (n *unasked) finish(found map[*watch]asking, report func(before, after int)) {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	if n.over {
		return
	}
	before, all := n.late, n.since
	now, next := n.sub.stream.server.published.now(), int64(-1)
	n.since, n.late, n.kept = nil, 0, 0
	for _, m := range all {
		age := now - m.since
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
		n.since = append(n.since, m)
	}
	if next >= 0 {
		n.checkIn(askWithin - time.Duration(next))
	}
	report(before, n.late)
}

// count returns how many assignments are late.
func (n *unasked) count() int {
	n.sub.mu.Lock()
	defer n.sub.mu.Unlock()
	return n.late
}

// end is called when the stream ends.
func (n *unasked) end() {
	n.sub.mu.Lock()
	known := n.timer != nil
	if known {
		n.timer.Stop()
	}
	*n = unasked{sub: n.sub, over: true}
	n.sub.mu.Unlock()
	if known {
		n.sub.stream.server.unasked.remove(n)
	}
}
