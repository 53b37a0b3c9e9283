package eds

import "time"

// member is a subscription in a group. It has what was in the pages that it was sent. What
// changes later, and what it asks for again, it has a watch of its own for. It is guarded by
// the subscription's lock.
type member struct {
	group *group        // set once
	sub   *subscription // set once

	sent     []sentPage
	taken    int   // positions before it are in sent, or about to be
	underWay *page // the outstanding response; nil: that has no page
}

// sentPage is what is kept of a page that a client was sent.
type sentPage struct {
	from     int
	versions []uint64 // shared with other members
	at       int64    // when it was sent, in Unix nanoseconds; 0: on an earlier stream
}

// end is the position after all that was sent.
func (m *member) end() int {
	if len(m.sent) == 0 {
		return 0
	}
	last := m.sent[len(m.sent)-1]
	return last.from + len(last.versions)
}

// due tells whether there is something to send.
func (m *member) due() bool { return m != nil && m.taken < len(m.group.slots) }

// memberOf returns the membership of a subscription; nil: it is in no group.
func memberOf(u *subscription) *member {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.member
}

// watch returns what the client has of a resource, as a watch that is in no list. If it was not
// sent the resource yet, the watch is new.
func (m *member) watch(at int) watch {
	w := watch{slot: m.group.slots[at], sub: m.sub, named: true}
	for _, p := range m.sent {
		if at >= p.from && at < p.from+len(p.versions) {
			w.sent, w.sentAt, w.holds = p.versions[at-p.from], p.at, true
			if p.at != 0 {
				w.state = accepted
			}
		}
	}
	if m.underWay != nil && m.underWay.has(at) {
		w.state, w.holds = pending, false
	}
	return w
}

// resume notes which versions a client has from an earlier stream, and tells whether it is a
// member. Of what is not the latest, it has a watch of its own.
func (m *member) resume(versions map[string]string) bool {
	if m == nil {
		return false
	}
	u, all := m.sub, len(m.group.slots)
	u.mu.Lock()
	m.taken = all // what changes from now on is sent
	u.mu.Unlock()
	latest := m.group.versions()
	u.mu.Lock()
	m.sent = []sentPage{{versions: latest}}
	u.mu.Unlock()
	for at, name := range m.group.names {
		text, claimed := versions[name]
		if version := parseVersion(text); !claimed || latest[at] == 0 || version != latest[at] {
			m.resumeAlone(at, claimed, version)
		}
	}
	return true
}

// resumeAlone notes that a client has another version of a resource than the latest, or none.
func (m *member) resumeAlone(at int, claimed bool, version uint64) {
	m.separateAt(at, false)
	u := m.sub
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.interest.watches[m.group.names[at]]
	w.sent, w.holds = 0, false
	if claimed {
		u.delivery.resume(w, version)
		u.queue.push(w)
	} else {
		u.queue.force(w)
	}
}

// alone tells whether the client has a watch of its own for a resource.
func (m *member) alone(at int) bool { return m.sub.interest.watches[m.group.names[at]] != nil }

// changed queues a resource for the client, if that was sent it or is about to be. Where it is
// not noted yet what the client has, it is told even that the resource is gone. It is called
// under the locks of slot and group.
func (m *member) changed(at int) {
	u := m.sub
	u.mu.Lock()
	w := (*watch)(nil)
	if u.member == m && at < m.taken && !m.alone(at) {
		w = m.separate(at)
		w.force = at >= m.end()
	}
	u.mu.Unlock()
	if w != nil {
		u.changed(w)
	}
}

// others calls each for every resource without a watch of its own: with what the client has, as
// a watch that is in no list, and with the frame that is under way, if any. It is called under
// the subscription's lock.
func (m *member) others(each func(watch, *frame)) {
	if m == nil {
		return
	}
	for at := range m.group.slots {
		switch {
		case m.alone(at):
		case m.underWay != nil && m.underWay.has(at):
			each(m.watch(at), m.underWay.frames[at-m.underWay.from])
		default:
			each(m.watch(at), nil)
		}
	}
}

// has tells whether the client asks for the resource of a name as a member.
func (m *member) has(name string) bool {
	if m == nil {
		return false
	}
	_, ok := m.group.at[name]
	return ok
}

// separate gives the client a watch of its own. It is called under the locks of slot and
// subscription.
func (m *member) separate(at int) *watch {
	w := new(m.watch(at))
	w.index = int32(len(w.slot.watches))
	w.slot.watches = append(w.slot.watches, w)
	m.sub.interest.add(w)
	if w.state == pending {
		m.sub.delivery.inFlight = append(m.sub.delivery.inFlight, sending{watch: w, frame: m.underWay.frames[at-m.underWay.from], index: int32(at - m.underWay.from)})
	}
	return w
}

// separateSent gives a member watches of its own for those of some names that it was sent, and
// tells whether these are all.
func (m *member) separateSent(names ...string) (all bool) {
	if m == nil {
		return true
	}
	m.group.table.mu.RLock()
	defer m.group.table.mu.RUnlock()
	all = true
	for _, name := range names {
		if at, ok := m.group.at[name]; ok {
			all = m.separateAt(at, true) && all
		}
	}
	return all
}

// separateAt gives a member a watch of its own for a resource; ifSent: only if it was sent that.
// It tells whether there is one.
func (m *member) separateAt(at int, ifSent bool) bool {
	s, u := m.group.slots[at], m.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.member != m || m.alone(at) {
		return true
	}
	sent := at < m.end()
	if !sent && ifSent {
		return false
	}
	if w := m.separate(at); !sent {
		u.queue.force(w)
	}
	return true
}

// dissolve ends a membership: the client has a watch of its own for each name. It is called
// when the client does what the others do not.
func (m *member) dissolve() {
	if m == nil {
		return
	}
	t := m.group.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := range m.group.slots {
		m.separateAt(at, false)
	}
	t.leave(m)
}

// next makes the response of the group's next page, nil where none is due.
func (m *member) next(nonce func() string, limit int) *response {
	from, due := m.take()
	if !due {
		return nil
	}
	u := m.sub
	p := m.group.page(from, limit)
	if p == nil {
		m.dissolve()
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.member != m {
		return nil
	}
	if u.paused {
		m.taken = m.end()
		return nil
	}
	return m.send(p, nonce)
}

// take tells whether a page is due, and where it begins. What changes from now on is sent again.
func (m *member) take() (from int, due bool) {
	if m == nil {
		return 0, false
	}
	u := m.sub
	u.mu.Lock()
	defer u.mu.Unlock()
	if due = u.member == m && m.due() && !u.delivery.waiting && !u.paused; due {
		m.taken = len(m.group.slots)
	}
	return m.end(), due
}

// send notes a page as sent, and returns the response.
func (m *member) send(p *page, nonce func() string) *response {
	u, now := m.sub, time.Now().UnixNano()
	m.taken, m.underWay = p.end(), p
	m.sent = append(m.sent, sentPage{from: p.from, versions: p.versions, at: now})
	r := newResponse()
	u.delivery.begin(nonce(), m.sendAlone(p, now))
	r.digest = p.digest
	p.addTo(r, u.delta)
	r.finish(u.table.typeURL, u.delta, u.delivery.nonce, u.stream.server.identifier)
	return r
}

// sendAlone notes as sent what a page holds of resources that the client has a watch of its
// own for: they have changed while the page was made. What they are now is in the queue.
func (m *member) sendAlone(p *page, now int64) (sent []sending) {
	if len(m.sub.interest.watches) == 0 {
		return nil
	}
	for i, f := range p.frames {
		if w := m.sub.interest.watches[m.group.names[p.from+i]]; w != nil {
			w.force = false
			sent = append(sent, m.sub.delivery.add(w, f, now, int32(i)))
		}
	}
	return sent
}
