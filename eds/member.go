package eds

import "time"

// member is a subscription in a group. Its client holds exactly the resources of pages. A
// resource that changed since, or was requested again, has its own watch. It is guarded by the
// subscription's lock.
type member struct {
	group *group        // set once
	sub   *subscription // set once

	pages    []sentPage
	progress int   // positions below it are in pages, or about to be
	underWay *page // the outstanding response; nil: it has no page
}

// sentPage is the record of a sent page.
type sentPage struct {
	start    int
	versions []uint64 // shared with other members
	time     int64    // time of sending, in Unix nanoseconds; 0: on an earlier stream
}

// end returns the position after the last sent page.
func (m *member) end() int {
	if len(m.pages) == 0 {
		return 0
	}
	last := m.pages[len(m.pages)-1]
	return last.start + len(last.versions)
}

// due reports whether a page is due.
func (m *member) due() bool { return m != nil && m.progress < len(m.group.slots) }

// memberOf returns the membership of a subscription, or nil.
func memberOf(u *subscription) *member {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.member
}

// watch returns the client's state of a resource, as a watch that is in no list. A resource that
// was not sent yet has a new watch.
func (m *member) watch(position int) watch {
	w := watch{slot: m.group.slots[position], sub: m.sub, named: true}
	for _, p := range m.pages {
		if position >= p.start && position < p.start+len(p.versions) {
			w.sent, w.sentAt, w.holds = p.versions[position-p.start], p.time, true
			if p.time != 0 {
				w.state = accepted
			}
		}
	}
	if m.underWay != nil && m.underWay.contains(position) {
		w.state, w.holds = pending, false
	}
	return w
}

// resume records the client's versions from an earlier stream, and reports whether it is a
// member. Resources with another version than the latest get their own watches.
func (m *member) resume(versions map[string]string) bool {
	if m == nil {
		return false
	}
	u, total := m.sub, len(m.group.slots)
	u.mu.Lock()
	m.progress = total // later changes are sent
	u.mu.Unlock()
	latest := m.group.versions()
	u.mu.Lock()
	m.pages = []sentPage{{versions: latest}}
	u.mu.Unlock()
	for position, name := range m.group.names {
		text, claimed := versions[name]
		if version := parseVersion(text); !claimed || latest[position] == 0 || version != latest[position] {
			m.resumeAlone(position, claimed, version)
		}
	}
	return true
}

// resumeAlone records that a client has another version of a resource than the latest, or none.
func (m *member) resumeAlone(position int, claimed bool, version uint64) {
	m.separateAt(position, false)
	u := m.sub
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.interest.watches[m.group.names[position]]
	w.sent, w.holds = 0, false
	if claimed {
		u.delivery.resume(w, version)
		u.queue.push(w)
	} else {
		u.queue.force(w)
	}
}

// alone reports whether a resource has its own watch.
func (m *member) alone(position int) bool {
	return m.sub.interest.watches[m.group.names[position]] != nil
}

// changed queues a resource for the client, if it was sent or is about to be. A client with an
// unrecorded version is sent even a removal. It is called under the locks of slot and group.
func (m *member) changed(position int) {
	u := m.sub
	u.mu.Lock()
	w := (*watch)(nil)
	if u.member == m && position < m.progress && !m.alone(position) {
		w = m.separate(position)
		w.force = position >= m.end()
	}
	u.mu.Unlock()
	if w != nil {
		u.changed(w)
	}
}

// visitShared visits every resource without its own watch: with the client's state, as a watch
// that is in no list, and with the outstanding frame, if any. It is called under the
// subscription's lock.
func (m *member) visitShared(visit func(watch, *frame)) {
	if m == nil {
		return
	}
	for position := range m.group.slots {
		switch {
		case m.alone(position):
		case m.underWay != nil && m.underWay.contains(position):
			visit(m.watch(position), m.underWay.frames[position-m.underWay.start])
		default:
			visit(m.watch(position), nil)
		}
	}
}

// includes reports whether a member requests the resource of a name.
func (m *member) includes(name string) bool {
	if m == nil {
		return false
	}
	_, ok := m.group.positions[name]
	return ok
}

// separate makes the client's own watch. It is called under the locks of slot and subscription.
func (m *member) separate(position int) *watch {
	w := new(m.watch(position))
	w.index = int32(len(w.slot.watches))
	w.slot.watches = append(w.slot.watches, w)
	m.sub.interest.add(w)
	if w.state == pending {
		m.sub.delivery.inFlight = append(m.sub.delivery.inFlight, sending{watch: w, frame: m.underWay.frames[position-m.underWay.start], index: int32(position - m.underWay.start)})
	}
	return w
}

// separateSent makes a member's own watches for those of some names that it was sent, and
// reports whether these are all.
func (m *member) separateSent(names ...string) (complete bool) {
	if m == nil {
		return true
	}
	m.group.table.mu.RLock()
	defer m.group.table.mu.RUnlock()
	complete = true
	for _, name := range names {
		if position, ok := m.group.positions[name]; ok {
			complete = m.separateAt(position, true) && complete
		}
	}
	return complete
}

// separateAt makes a member's own watch for a resource; ifSent: only if it was sent. It reports
// whether there is one.
func (m *member) separateAt(position int, ifSent bool) bool {
	s, u := m.group.slots[position], m.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.member != m || m.alone(position) {
		return true
	}
	sent := position < m.end()
	if !sent && ifSent {
		return false
	}
	if w := m.separate(position); !sent {
		u.queue.force(w)
	}
	return true
}

// dissolve ends a membership: each name gets its own watch. It is called when the client
// diverges from the others.
func (m *member) dissolve() {
	if m == nil {
		return
	}
	t := m.group.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for position := range m.group.slots {
		m.separateAt(position, false)
	}
	t.leave(m)
}

// next makes the response of the group's next page, or returns nil.
func (m *member) next(nonce func() string, limit int) *response {
	start, due := m.beginPage()
	if !due {
		return nil
	}
	u := m.sub
	p := m.group.page(start, limit)
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
		m.progress = m.end()
		return nil
	}
	return m.send(p, nonce)
}

// beginPage reports whether a page is due, and where it begins. Later changes are sent again.
func (m *member) beginPage() (start int, due bool) {
	if m == nil {
		return 0, false
	}
	u := m.sub
	u.mu.Lock()
	defer u.mu.Unlock()
	if due = u.member == m && m.due() && !u.delivery.waiting && !u.paused; due {
		m.progress = len(m.group.slots)
	}
	return m.end(), due
}

// send records a page as sent, and returns the response.
func (m *member) send(p *page, nonce func() string) *response {
	u, now := m.sub, time.Now().UnixNano()
	m.progress, m.underWay = p.end(), p
	m.pages = append(m.pages, sentPage{start: p.start, versions: p.versions, time: now})
	r := newResponse()
	u.delivery.begin(nonce(), m.sendAlone(p, now))
	r.digest = p.digest
	p.addTo(r, u.delta)
	r.finish(u.table.typeURL, u.delta, u.delivery.nonce, u.stream.server.identifier)
	return r
}

// sendAlone records a page's resources with own watches as sent: they have changed while the
// page was made. Their present versions are in the queue.
func (m *member) sendAlone(p *page, now int64) (sendings []sending) {
	if len(m.sub.interest.watches) == 0 {
		return nil
	}
	for i, f := range p.frames {
		if w := m.sub.interest.watches[m.group.names[p.start+i]]; w != nil {
			w.force = false
			sendings = append(sendings, m.sub.delivery.add(w, f, now, int32(i)))
		}
	}
	return sendings
}
