package inflight

import "time"

// waits is for how long a stream waits for room.
type waits struct {
	since  time.Time     // when the present wait began; zero: there is none
	before time.Duration // that all others lasted
}

func (w *waits) begin() { w.since = time.Now() }

func (w *waits) end() { *w = waits{before: w.all()} }

// present is how long the present wait has lasted, zero if there is none.
func (w *waits) present() time.Duration {
	if w.since.IsZero() {
		return 0
	}
	return max(1, time.Since(w.since))
}

// all is how long all have lasted.
func (w *waits) all() time.Duration { return w.before + w.present() }

// deadline is when the present message of a stream is late.
type deadline struct {
	timer   *time.Timer // nil: it has no deadline
	due     time.Time
	allowed time.Duration // what it had until then
	missing int           // how much was missing
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// time starts the time that the rest of a message has, once the client may send it, and stops it
// when that has come. The caller holds mu.
func (c *conn) time(s *stream) {
	switch {
	case s.left == 0:
		s.late.stop()
	case s.late.timer == nil && s.window >= s.left:
		c.start(s)
	}
}

// start starts that time. The caller holds mu.
func (c *conn) start(s *stream) {
	allowed := c.budget.arrival(s.left)
	s.late = deadline{time.AfterFunc(allowed, func() { c.look(s) }), time.Now().Add(allowed), allowed, s.left}
}

// look ends the connection if a message is late.
func (c *conn) look(s *stream) {
	c.mu.Lock()
	late, excess := &s.late, time.Since(s.late.due)
	if late.timer == nil || excess < 0 { // it has come, and another one may have begun
		c.mu.Unlock()
		return
	}
	if excess > late.allowed/2 { // hdsd itself stood still
		c.start(s)
		c.mu.Unlock()
		return
	}
	missing := late.missing
	c.mu.Unlock()
	if c.budget.Late != nil {
		c.budget.Late(c.caller, missing)
	}
	c.hangUp()
}
