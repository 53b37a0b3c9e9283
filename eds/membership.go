package eds

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// membership is a subscription's part in a group, until its end. The client requests the names of
// the group, and has the versions in pages. A resource gets a watch in blocks when anything else
// happens to it. The watch of a name that the client gives up stays there, closed: if the client
// requests the name again, that is a name beside the group. The zero value is for a subscription
// without a group. It is guarded by the subscription's lock.
type membership struct {
	group    *group   // set once
	blocks   []*block // watches by position, which the slots do not list; nil: there are none
	pages    []sentPage
	sent     int   // positions below it are in pages, or have watches
	making   bool  // a page is being made: changes from position sent on are queued
	underWay *page // in the outstanding response; nil: it has no page
}

// blockSize is the number of positions in a block.
const blockSize = 64

// block is watches of successive positions; nil: there is none.
type block [blockSize]*watch

// sentPage is the record of a sent page.
type sentPage struct {
	start    int
	versions []uint64 // shared with other members
	time     int64    // time of sending, in Unix nanoseconds; 0: on an earlier stream
}

func (p *sentPage) end() int { return p.start + len(p.versions) }

// total returns the number of positions.
func (m *membership) total() int {
	if m.group == nil {
		return 0
	}
	return len(m.group.slots)
}

// due reports whether a page is due.
func (m *membership) due() bool { return m.sent < m.total() && !m.making }

// position returns the position of a name that the client has not given up.
func (m *membership) position(name string) (i int, ok bool) {
	if m.group == nil {
		return 0, false
	}
	if i, ok = m.group.positions[name]; ok {
		w := m.watch(i)
		ok = w == nil || !w.closed
	}
	return i, ok
}

// watch returns the client's own watch of a position, or nil.
func (m *membership) watch(i int) *watch {
	if k := i / blockSize; k < len(m.blocks) && m.blocks[k] != nil {
		return m.blocks[k][i%blockSize]
	}
	return nil
}

// watchesIn visits the client's own watches of positions from start to end.
func (m *membership) watchesIn(start, end int) iter.Seq2[int, *watch] {
	return func(yield func(int, *watch) bool) {
		for i := start; i < end && m.blocks != nil; i++ {
			if m.blocks[i/blockSize] == nil {
				i |= blockSize - 1
			} else if w := m.watch(i); w != nil && !yield(i, w) {
				return
			}
		}
	}
}

// paged returns the client's state of a position without a watch of its own, and the frame if it is
// outstanding.
func (m *membership) paged(i int) (w watch, underWay *frame) {
	w = watch{slot: m.group.slots[i], index: unplaced, named: true}
	if i >= m.sent {
		return w, nil
	}
	k, _ := slices.BinarySearchFunc(m.pages, i+1, func(p sentPage, end int) int { return cmp.Compare(p.end(), end) })
	p := &m.pages[k]
	w.sent, w.sentAt, w.holds = p.versions[i-p.start], p.time, true
	if p.time != 0 {
		w.state = accepted
	}
	if m.underWay != nil && m.underWay.contains(i) {
		w.state, w.holds, underWay = pending, false, m.underWay.frames[i-m.underWay.start]
	}
	return w, underWay
}

// own returns the client's own watch of a position in the group, and makes it if missing.
func (m *membership) own(u *subscription, i int) *watch {
	if w := m.watch(i); w != nil {
		return w
	}
	w, f := m.paged(i)
	w.sub = u
	if m.blocks == nil {
		m.blocks = make([]*block, (m.total()+blockSize-1)/blockSize)
	}
	b := &m.blocks[i/blockSize]
	if *b == nil {
		*b = new(block)
	}
	(*b)[i%blockSize] = &w
	if f != nil {
		u.delivery.inFlight = append(u.delivery.inFlight, sending{watch: &w, frame: f, index: int32(i - m.underWay.start)})
	}
	return &w
}

// changed queues a resource because it changed, unless a later page has it. It is called under the
// group's lock.
func (m *membership) changed(u *subscription, i int) {
	u.mu.Lock()
	w := (*watch)(nil)
	if unsent := i >= m.sent; !unsent || m.making {
		if w = m.own(u, i); w.closed {
			w = nil
		} else if unsent {
			w.force = true // even a removal is sent
		}
	}
	u.mu.Unlock()
	if w != nil {
		u.changed(w)
	}
}

// queueRest queues the resources that are in no page yet, and ends the pages. It is called under
// the lock.
func (m *membership) queueRest(u *subscription) {
	for i := m.sent; i < m.total(); i++ {
		u.queue.force(m.own(u, i))
	}
	m.sent, m.making = m.total(), false
}

// next makes the response of the group's next page, or returns nil.
func (m *membership) next(u *subscription, nonce func() string, limit int) *response {
	u.mu.Lock()
	due, start := m.due() && !u.delivery.waiting && !u.paused, m.sent
	m.making = m.making || due
	u.mu.Unlock()
	if !due {
		return nil
	}
	p := m.group.page(start, limit)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !m.making {
		return nil // all are in the queue
	}
	if m.making = false; p == nil {
		m.queueRest(u)
	}
	if p == nil || u.paused {
		return nil
	}
	return m.send(u, p, nonce)
}

// send records a page as sent, and returns the response. Resources that changed while the page
// was made are in the queue.
func (m *membership) send(u *subscription, p *page, nonce func() string) *response {
	now, sendings := time.Now().UnixNano(), []sending(nil)
	for i, w := range m.watchesIn(p.start, p.end()) {
		w.force = false
		sendings = append(sendings, u.delivery.add(w, p.frames[i-p.start], now, int32(i-p.start)))
	}
	m.sent, m.underWay = p.end(), p
	m.pages = append(m.pages, sentPage{p.start, p.versions, now})
	u.delivery.begin(nonce(), sendings)
	r := newResponse()
	r.digest = p.digest
	p.addTo(r, u.delta)
	r.finish(u.table.typeURL, u.delta, u.delivery.nonce, u.stream.server.identifier)
	return r
}

// split makes watches of an outstanding page, so that each resource has its own answer.
func (m *membership) split(u *subscription) {
	if p := m.underWay; p != nil {
		for i := p.start; i < p.end(); i++ {
			m.own(u, i)
		}
	}
}

// resume records the client's versions from an earlier stream, and reports whether the
// subscription is in a group. Resources with another version than the latest are queued.
func (m *membership) resume(u *subscription, versions map[string]string) bool {
	u.mu.Lock()
	m.making = m.group != nil // so that later changes are queued
	u.mu.Unlock()
	if m.group == nil {
		return false
	}
	latest := m.group.versions()
	u.mu.Lock()
	defer u.mu.Unlock()
	m.pages, m.sent, m.making = []sentPage{{versions: latest}}, len(latest), false
	for i, name := range m.group.names {
		text, claimed := versions[name]
		version := parseVersion(text)
		if claimed && version == latest[i] && version != 0 {
			continue
		}
		w := m.own(u, i)
		w.sent, w.holds = 0, false
		if claimed {
			u.delivery.resume(w, version)
			u.queue.push(w)
		} else {
			u.queue.force(w)
		}
	}
	return true
}
