package hds

import "time"

// silenceTimer waits for a checker to report what it was sent. It belongs to the
// goroutine that sends.
type silenceTimer struct {
	*time.Timer
	running bool
}

func newSilenceTimer() silenceTimer { return silenceTimer{Timer: stoppedTimer()} }

// watch starts the timer with the first plan that lists something. A plan that
// lists nothing stops it.
func (t *silenceTimer) watch(p *plan, within time.Duration) {
	if len(p.order) == 0 {
		t.Stop()
		t.running = false
		return
	}
	if !t.running {
		t.Reset(within)
		t.running = true
	}
}
