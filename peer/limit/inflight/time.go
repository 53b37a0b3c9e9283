package inflight

import "time"

// waits measures how long a stream waits for room.
type waits struct {
	start  time.Time     // start of the present wait; zero: there is none
	before time.Duration // total of earlier waits
}

func (w *waits) begin() { w.start = time.Now() }

func (w *waits) end() { *w = waits{before: w.total()} }

// present returns the length of the present wait, zero without one.
func (w *waits) present() time.Duration {
	if w.start.IsZero() {
		return 0
	}
	return max(1, time.Since(w.start))
}

// total returns the length of all waits.
func (w *waits) total() time.Duration { return w.before + w.present() }

// deadline is the time for the client to send the rest of a message, or to acknowledge the
// settings.
type deadline struct {
	timer   *time.Timer // nil: it has no deadline
	due     time.Time
	allowed time.Duration // time allowed from start to deadline
	missing int           // number of missing bytes of a message
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// time starts the time for the rest of a message, once the client may send it. The caller holds
// mu.
func (c *conn) time(s *stream) {
	if s.left > 0 && s.late.timer == nil && s.window >= s.left {
		c.start(&s.late, s.left)
	}
}

// start starts the time for so many bytes. The caller holds mu.
func (c *conn) start(late *deadline, missing int) {
	allowed := c.budget.arrival(missing)
	*late = deadline{time.AfterFunc(allowed, func() { c.look(late) }), time.Now().Add(allowed), allowed, missing}
}

// look ends the connection if the client is late.
func (c *conn) look(late *deadline) {
	c.mu.Lock()
	excess := time.Since(late.due)
	if late.timer == nil || excess < 0 { // it has arrived, and another one may have begun
		c.mu.Unlock()
		return
	}
	if excess > late.allowed/2 { // hdsd itself stood still
		c.start(late, late.missing)
		c.mu.Unlock()
		return
	}
	missing := late.missing
	c.mu.Unlock()
	c.late(missing)
}

// late ends the connection of a client that is late.
func (c *conn) late(missing int) {
	if c.budget.Late != nil {
		c.budget.Late(c.caller, missing)
	}
	c.hangUp()
}

// expect ends the connection unless the only message of a stream has arrived in time, and its
// end. The time in which it waits for room does not count. The caller stops that.
func (c *conn) expect(s *stream) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	allowed, waited := c.budget.arrival(largestQuestion), s.waits.total()
	var timer *time.Timer
	timer = time.AfterFunc(allowed, func() {
		c.mu.Lock()
		before := waited
		if waited = s.waits.total(); waited > before {
			timer.Reset(allowed)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		c.late(0)
	})
	return timer.Stop
}
