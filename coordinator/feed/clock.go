package feed

import (
	"context"
	"time"
)

// clock wakes an Intake at its deadlines.
type clock struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func startClock(ctx context.Context, in *Intake) *clock {
	ctx, cancel := context.WithCancel(ctx)
	c := &clock{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		for {
			timer.Stop()
			if deadline := in.tick(in.Now()); !deadline.IsZero() {
				timer.Reset(max(0, time.Until(deadline)))
			}
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-in.moved:
			}
		}
	}()
	return c
}

// stop ends the clock and waits for it. A nil clock never ran.
func (c *clock) stop() {
	if c != nil {
		c.cancel()
		<-c.ended
	}
}
