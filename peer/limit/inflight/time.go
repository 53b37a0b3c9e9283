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

// deadlineParts is the number of parts in which the time of a deadline passes. However long hdsd itself
// stands still, only one part is over then.
const deadlineParts = 5

// deadline is the time for the client to send the rest of a message, or to acknowledge the
// settings.
type deadline struct {
	timer   *time.Timer // nil: it has no deadline
	due     time.Time   // end of the present part
	parts   int         // remaining parts, with the present one
	missing int         // number of missing bytes of a message

	waits  *waits        // the time begins anew after a wait for room; nil: it does not
	waited time.Duration // total of waits when the present part began
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
	late.parts, late.missing = deadlineParts, missing
	c.startPart(late)
}

// startPart starts the present part of the time. The caller holds mu.
func (c *conn) startPart(late *deadline) {
	if late.waits != nil {
		late.waited = late.waits.total()
	}
	part := c.budget.arrival(late.missing) / deadlineParts
	late.due, late.timer = time.Now().Add(part), time.AfterFunc(part, func() { c.look(late) })
}

// look ends the connection if the client is late.
func (c *conn) look(late *deadline) {
	c.mu.Lock()
	if late.timer == nil || time.Now().Before(late.due) { // it has arrived, and another one may have begun
		c.mu.Unlock()
		return
	}
	if late.parts--; late.waits != nil && late.waits.total() > late.waited {
		late.parts = deadlineParts
	}
	if late.parts > 0 {
		c.startPart(late)
		c.mu.Unlock()
		return
	}
	missing := late.missing
	late.timer = nil
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
func (c *conn) expect(s *stream) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := &deadline{waits: &s.waits}
	c.start(end, 0)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		end.stop()
	}
}
