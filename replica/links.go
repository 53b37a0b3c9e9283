package replica

import (
	"maps"
	"slices"
	"time"
)

func (e LinkOpened) handle(r *Replica, now time.Time) {
	r.closeLink(now, e.Replica)
	r.links[e.Replica] = &link{number: e.Link}
}

func (e LinkClosed) handle(r *Replica, now time.Time) {
	if l := r.links[e.Replica]; l != nil && l.number == e.Link {
		r.closeLink(now, e.Replica)
	}
}

// closeLink ends the link to a replica.
func (r *Replica) closeLink(now time.Time, replica string) {
	delete(r.links, replica)
	if r.leader.replica == replica {
		r.leader.link = 0
	}
	if r.term != nil {
		r.term.closeLink(now, replica)
	}
}

func (e Sent) handle(r *Replica, _ time.Time) {
	if l := r.links[e.Replica]; l != nil && l.number == e.Link {
		l.busy = false
	}
}

func (e Received) handle(r *Replica, now time.Time) {
	l := r.links[e.Replica]
	if l == nil || l.number != e.Link {
		return // a late message of an earlier link
	}
	id := e.Message.term()
	switch m := e.Message.(type) {
	case Welcome:
		l.welcome = &m
		r.join()
	case Report:
		if r.term != nil && r.term.id == id {
			r.hear(now, e.Replica, &m)
		}
	case Directions:
		if r.leader.link == l.number && r.leader.replica == e.Replica && r.leader.term == id {
			r.follow(now, &m)
		}
	}
}

// join makes the replica that etcd has elected the leader to report to, when it has said welcome. What others claim does
// not count.
func (r *Replica) join() {
	l := r.links[r.view.leader]
	if l == nil || l.welcome == nil || l.welcome.Term.Epoch != r.view.epoch || r.view.epoch < r.epoch {
		return
	}
	m := l.welcome
	l.welcome = nil
	r.learn(m.Term.Epoch)
	if m.Term.Epoch == r.leader.term.Epoch && m.Term.Round < r.leader.term.Round || r.term != nil {
		return
	}
	r.leader = leader{term: m.Term, replica: r.view.leader, link: l.number, full: true}
	r.orders.begin(m.Term, m.Head)
}

// follow carries out the directions of the leader.
func (r *Replica) follow(now time.Time, m *Directions) {
	for i := range m.Assignments {
		a := &m.Assignments[i]
		if spec := r.roster.assign(now, m.Term, a); spec != nil {
			r.yield(Assigned{a.Checker, spec})
		}
	}
	for _, checker := range m.Resend {
		if s := r.roster.sessions[checker]; s != nil {
			r.roster.mark(s)
		}
	}
	r.own.Want(m.Wanted)
	for _, refusal := range m.Refusals {
		r.orders.refuse(m.Term, refusal, r.yield)
	}
}

// flush ends a step: this replica reports to itself if it leads, commits what is due, and sends.
func (r *Replica) flush(now time.Time) {
	r.promote(now)
	if r.Machine() != nil {
		r.lead(now)
	}
	if r.won != nil {
		r.commit(now)
	}
	for _, replica := range slices.Sorted(maps.Keys(r.links)) {
		if l := r.links[replica]; !l.busy {
			r.send(now, replica, l)
		}
	}
}

// lead does the work of a leader at the end of a step.
func (r *Replica) lead(now time.Time) {
	for {
		if len(r.roster.dirty) > 0 || r.orders.hasNew() {
			r.term.receive(now, r.options.ID, &Report{Term: r.term.id, Sessions: r.roster.take(r.term.id), Orders: r.orders.take(r.term.id, false)})
		}
		if !r.term.finish(now, &r.committer) {
			r.committer.discard()
			r.endTerm()
			return
		}
		directions := r.term.directions(r.options.ID, r.committer.done)
		if directions == nil {
			return
		}
		r.follow(now, directions)
	}
}

// commit commits what is due. A batch in progress goes on after the end of its Machine, since parts of it
// may be in the log.
func (r *Replica) commit(now time.Time) {
	due, ok, err := r.committer.commit(now)
	if err != nil {
		r.resign(err)
	} else if ok {
		r.yield(due)
	}
}

// send sends the next message on a link that has room.
func (r *Replica) send(now time.Time, replica string, l *link) {
	switch {
	case r.term != nil && l.welcomed != r.term.id:
		l.welcomed = r.term.id
		r.transmit(replica, l, Welcome{r.term.id, r.term.head})
	case r.term != nil:
		d := r.term.directions(replica, r.committer.done)
		if wanted := r.term.union.Wanted(replica); len(wanted) > 0 {
			if d == nil {
				d = &Directions{Term: r.term.id}
			}
			d.Wanted = wanted
		}
		if d != nil {
			r.transmit(replica, l, *d)
		}
	case r.leader.replica == replica && r.leader.link == l.number && (r.leader.full || r.own.Due() || len(r.roster.dirty) > 0 || r.orders.hasNew()):
		r.sendReport(now, l)
	}
}

// sendReport sends what has changed to the leader, or all.
func (r *Replica) sendReport(now time.Time, l *link) {
	r.next.report = now.Add(r.reportInterval())
	full := r.leader.full
	if r.leader.full = false; full {
		r.roster.markAll()
		r.own.Restart()
	}
	term := r.leader.term
	r.transmit(r.leader.replica, l, Report{
		Term: term, Full: full, Sessions: r.roster.take(term), Orders: r.orders.take(term, full), Clusters: r.own.Take(),
	})
}

func (r *Replica) transmit(replica string, l *link, m Message) {
	l.busy = true
	r.yield(Send{replica, l.number, m})
}
