package store

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTheWriterRests covers when the next transaction begins: after the rest, and at once if a caller waits or much
// of the queue is taken.
func TestTheWriterRests(t *testing.T) {
	for name, c := range map[string]struct {
		transitions int
		flush       bool
		want        time.Duration
	}{
		"few":            {transitions: 1, want: 100 * time.Millisecond},
		"a caller waits": {transitions: 1, flush: true},
		"many":           {transitions: 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &writer{intake: newIntake(64), closing: make(chan struct{}), pruner: pruner{quota: &quota{}}, rest: time.Now().Add(100 * time.Millisecond)}
				began := time.Now()
				w.intake.append(flips(c.transitions), time.Now)
				if c.flush {
					go func() { _ = w.intake.flush(t.Context()) }()
					synctest.Wait()
				}
				if w.wait(nil, nil); time.Since(began) != c.want {
					t.Errorf("after %v, want %v", time.Since(began), c.want)
				}
				w.intake.end()
			})
		})
	}
}
