package hds

import "time"

// silenceTimer waits for a checker to report on its specifier. It stands still while hdsd itself
// does not read the checker's input. It belongs to the goroutine that sends.
type silenceTimer struct {
	*time.Timer
	running bool
	heldUp  func() time.Duration // total time for which hdsd did not read
	allowed time.Duration        // part of it that the timer has allowed for
}

func newSilenceTimer(heldUp func() time.Duration) silenceTimer {
	return silenceTimer{Timer: stoppedTimer(), heldUp: heldUp}
}

// watch starts the timer with the first non-empty plan. An empty plan stops it.
func (t *silenceTimer) watch(p *plan, limit time.Duration) {
	if len(p.order) == 0 {
		t.Stop()
		t.running = false
		return
	}
	if !t.running {
		t.allowed = t.heldUp()
		t.Reset(limit)
		t.running = true
	}
}

// expired reports, when the timer fires, whether the time is over. The timer goes on for as long
// as hdsd did not read meanwhile.
func (t *silenceTimer) expired() bool {
	held := t.heldUp()
	if extra := held - t.allowed; extra > 0 {
		t.allowed = held
		t.Reset(extra)
		return false
	}
	return true
}
