package hds

import "time"

// silenceTimer waits for a checker to report what it was sent. It stands still while hdsd
// itself does not read what the checker says. It belongs to the goroutine that sends.
type silenceTimer struct {
	*time.Timer
	running bool
	heldUp  func() time.Duration // for how long hdsd did not read, in all
	allowed time.Duration        // of that; the timer knows it
}

func newSilenceTimer(heldUp func() time.Duration) silenceTimer {
	return silenceTimer{Timer: stoppedTimer(), heldUp: heldUp}
}

// watch starts the timer with the first plan that lists something. A plan that
// lists nothing stops it.
func (t *silenceTimer) watch(p *plan, within time.Duration) {
	if len(p.order) == 0 {
		t.Stop()
		t.running = false
		return
	}
	if !t.running {
		t.allowed = t.heldUp()
		t.Reset(within)
		t.running = true
	}
}

// over reports, when the timer has ended, whether the time is over. It goes on for as long as
// hdsd did not read meanwhile.
func (t *silenceTimer) over() bool {
	held := t.heldUp()
	if more := held - t.allowed; more > 0 {
		t.allowed = held
		t.Reset(more)
		return false
	}
	return true
}
