package api

import (
	"context"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// ClockPath is the REST path for the clock.
const ClockPath = "/v1/clock"

// Clock is hdsd's view of its machine's clock.
type Clock struct {
	Doubted bool
	Wall    time.Time // the time of the clock
	Steady  time.Time // the time by which history ages
	Since   time.Time // of the doubt
}

// GetClock returns whether hdsd doubts its machine's clock.
func (c *Control) GetClock(context.Context, *hdsdv1.GetClockRequest) (*hdsdv1.ClockState, error) {
	return clockMessage(c.controller.Clock()), nil
}

// ConfirmClock confirms that the clock is right.
func (c *Control) ConfirmClock(ctx context.Context, r *hdsdv1.ConfirmClockRequest) (*hdsdv1.ConfirmClockResponse, error) {
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	before, err := c.controller.ConfirmClock(ctx, author)
	if err != nil {
		return nil, grpcError(err)
	}
	return &hdsdv1.ConfirmClockResponse{Before: clockMessage(before)}, nil
}

func clockMessage(c Clock) *hdsdv1.ClockState {
	m := &hdsdv1.ClockState{Doubted: c.Doubted, Clock: timeMessage(c.Wall), Steady: timeMessage(c.Steady)}
	if c.Doubted {
		m.Since = timeMessage(c.Since)
	}
	return m
}
