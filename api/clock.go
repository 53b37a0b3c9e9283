package api

import (
	"context"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// ClockPath is where operators say over REST that the clock is right.
const ClockPath = "/v1/clock"

// Clock is what hdsd makes of the clock of its machine.
type Clock struct {
	Doubted bool
	Wall    time.Time // what it says
	Steady  time.Time // the time by which history ages
	Since   time.Time // of the doubt
}

// GetClock tells whether hdsd doubts the clock of its machine.
func (c *Control) GetClock(context.Context, *hdsdv1.GetClockRequest) (*hdsdv1.ClockState, error) {
	return clockMessage(c.controller.Clock()), nil
}

// ConfirmClock says that the clock is right.
func (c *Control) ConfirmClock(ctx context.Context, r *hdsdv1.ConfirmClockRequest) (*hdsdv1.ConfirmClockResponse, error) {
	author, err := authorOf(r.GetAuthor())
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
