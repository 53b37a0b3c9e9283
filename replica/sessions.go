package replica

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

// session applies the state of a checker that a replica reports. If another replica has a session of the checker, too,
// this one waits until that ends or is silent, as within one replica.
func (t *term) session(now time.Time, from string, s *Session) {
	h := t.holdings[s.Checker]
	switch {
	case h == nil && s.Connected:
		h = &holding{replica: from, rivals: map[string]time.Time{}}
		t.holdings[s.Checker] = h
		t.adopt(now, h, s)
	case h == nil:
	case h.replica != from:
		if since, known := h.rivals[from]; !s.Connected {
			t.setRival(s.Checker, from, time.Time{})
		} else if !known || since.IsZero() {
			t.setRival(s.Checker, from, now)
		}
	case h.session != s.Number && s.Connected:
		if s.Lost && h.session != 0 {
			t.disconnect(now, s)
		}
		t.adopt(now, h, s)
	case s.Connected:
		t.follow(now, h, s)
	default:
		t.disconnect(now, s)
		t.drop(now, s.Checker)
	}
}

// adopt begins a session of a checker.
func (t *term) adopt(now time.Time, h *holding, s *Session) {
	if h.session, h.heard = 0, now; s.Node == nil {
		t.peers[h.replica].ask(s.Checker)
		return
	}
	h.session = s.Number
	h.forgetSession()
	t.step(now, machine.Connected{Checker: *s.Node})
	t.follow(now, h, s)
}

// disconnect ends the session of a checker.
func (t *term) disconnect(now time.Time, s *Session) {
	if s.Ended {
		t.step(now, machine.StreamEnded{Checker: s.Checker})
	}
	t.step(now, machine.Disconnected{Checker: s.Checker})
}

// lose ends the session of a checker of which nothing is known any more.
func (t *term) lose(now time.Time, checker string) {
	t.step(now, machine.Disconnected{Checker: checker})
	t.drop(now, checker)
}

// drop forgets the session of a checker. Another one takes its place.
func (t *term) drop(now time.Time, checker string) {
	h := t.holdings[checker]
	if len(h.rivals) > 0 {
		t.giveToRival(now, checker, h)
		return
	}
	delete(t.holdings, checker)
}

// giveToRival makes the latest rival the holder of a checker, and asks it for the state of the checker.
func (t *term) giveToRival(now time.Time, checker string, h *holding) {
	var latest string
	for _, replica := range slices.Sorted(maps.Keys(h.rivals)) {
		if latest == "" || h.rivals[replica].After(h.rivals[latest]) {
			latest = replica
		}
	}
	t.setRival(checker, latest, time.Time{})
	h.replica, h.session, h.heard = latest, 0, now
	h.forgetSession()
	t.peers[latest].ask(checker)
}

// follow applies changes of a session.
func (t *term) follow(now time.Time, h *holding, s *Session) {
	if s.Ended {
		t.step(now, machine.StreamEnded{Checker: s.Checker})
	}
	if spec := h.follow(s.Followed); spec != nil {
		t.step(now, machine.Followed{Checker: s.Checker, Specifier: spec})
	}
	if s.Heard || len(s.Votes) > 0 {
		h.heard = now
		t.step(now, machine.Reported{Checker: s.Checker, Votes: t.votes(h, s)})
	}
	if s.Silent != h.silent {
		h.silent = s.Silent
		t.step(now, machine.Silenced{Checker: s.Checker, Silent: s.Silent})
	}
}

// votes returns the votes of a session for the machine. It leaves out those by no specifier of the term, those on
// endpoints that the machine does not have, and those of before the specifier with which the votes on an endpoint begin.
func (t *term) votes(h *holding, s *Session) []health.Vote {
	if s.Followed == 0 {
		return nil
	}
	votes := make([]health.Vote, 0, len(s.Votes))
	for _, v := range s.Votes {
		id, ok := t.machine.Rulings.Find(v.Endpoint)
		if begins := h.begun[v.Endpoint]; !ok || begins > s.Followed || !v.Status.Valid() {
			continue
		}
		votes = append(votes, health.Vote{Endpoint: id, Status: v.Status, HTTPStatusCode: v.HTTPStatusCode})
	}
	return votes
}

// order carries out an order once, also if a link has lost the answer and the replica sends it again. The entries
// of the order have its id and its operator. An order that changes nothing has an entry with these alone: a leader that
// is replaced meanwhile must not say what it believes to be true.
func (t *term) order(now time.Time, p *peer, o *Order) {
	earlier := t.orders[o.ID.Process]
	if earlier == nil {
		earlier = &taken{}
		t.orders[o.ID.Process] = earlier
	}
	if o.ID.Number <= earlier.latest {
		for _, refusal := range earlier.refused {
			if refusal.ID == o.ID {
				p.refuse(refusal)
			}
		}
		return
	}
	earlier.latest = o.ID.Number
	first, err := len(t.entries), errNoOrder
	if event, refused := copyOrder(o.Event); event != nil {
		t.step(now, event)
		err = refused()
	}
	if err != nil && len(t.entries) == first {
		refusal := Refusal{o.ID, err}
		p.refuse(refusal)
		if earlier.refused = append(earlier.refused, refusal); len(earlier.refused) > maxOrders {
			earlier.refused = earlier.refused[1:]
		}
		return
	}
	for i, e := range t.entries[first:] {
		marked := *e
		marked.Order, marked.Operator = o.ID, o.Operator
		t.entries[first+i] = &marked
	}
	if len(t.entries) == first {
		t.entries = append(t.entries, &log.Entry{Order: o.ID, Operator: o.Operator})
	}
}

// refuse adds a refusal to send. A replica has no more orders than these, unless it reads no answers.
func (p *peer) refuse(r Refusal) {
	if len(p.refusals) < maxOrders {
		p.refusals = append(p.refusals, r)
	}
}

// copyOrder returns a copy of an order, and its error after the step; nil for any other event.
func copyOrder(e machine.Event) (order machine.Event, err func() error) {
	none := func() error { return nil }
	switch e := e.(type) {
	case *machine.SetOverride:
		o := &machine.SetOverride{Override: e.Override}
		return o, func() error { return o.Err }
	case *machine.ClearOverrides:
		o := &machine.ClearOverrides{Scope: e.Scope, All: e.All, Author: e.Author}
		return o, func() error { return o.Err }
	case *machine.Freeze:
		return &machine.Freeze{Author: e.Author, Reason: e.Reason, Hold: e.Hold}, none
	case *machine.Unfreeze:
		return &machine.Unfreeze{Author: e.Author}, none
	case *machine.SetTrust:
		o := &machine.SetTrust{Checker: e.Checker, Trust: e.Trust}
		return o, func() error { return o.Err }
	case *machine.ClearTrust:
		return &machine.ClearTrust{Checker: e.Checker, Author: e.Author}, none
	case *machine.Annotate:
		return &machine.Annotate{Event: e.Event}, none
	}
	return nil, none
}

// Stream is the stream of a checker, as the leader knows it.
type Stream struct {
	Replica  string // that has it
	Sent     bool   // a specifier is sent, or to be sent
	Synced   bool   // the checker follows the latest one
	Followed bool   // it follows one of this term
	Silent   bool
	Heard    time.Time // when it last reported
}

// Stream returns the stream of a checker; not ok if this replica does not lead, or no replica has the checker.
func (r *Replica) Stream(checker string) (s Stream, ok bool) {
	if r.term == nil {
		return s, false
	}
	h := r.term.holdings[checker]
	if h == nil {
		return s, false
	}
	s = Stream{Replica: h.replica, Sent: h.latest != nil, Followed: h.followed > 0, Silent: h.silent, Heard: h.heard}
	s.Synced = s.Sent && h.followed == h.latest.Serial
	return s, true
}
