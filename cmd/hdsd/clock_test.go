package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
)

func (f *fakeControl) GetClock(context.Context, *hdsdv1.GetClockRequest) (*hdsdv1.ClockState, error) {
	return f.clock, nil
}

func (f *fakeControl) ConfirmClock(_ context.Context, r *hdsdv1.ConfirmClockRequest) (*hdsdv1.ConfirmClockResponse, error) {
	if r.GetAuthor() == "full" {
		return nil, api.DiskFailing("nothing has changed, confirm the clock again once the disk works: no space left")
	}
	before := f.clock
	f.clock, f.ended = &hdsdv1.ClockState{Clock: before.GetClock(), Steady: before.GetClock()}, r.GetAuthor()
	return &hdsdv1.ConfirmClockResponse{Before: before}, nil
}

func TestClock(t *testing.T) {
	control, address := serveFreezable(t)
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }
	jumped := func(d time.Duration) *hdsdv1.ClockState {
		return &hdsdv1.ClockState{Doubted: true, Clock: at(d), Steady: at(0), Since: at(-time.Hour)}
	}
	for _, step := range []struct {
		before *hdsdv1.ClockState
		line   string
		want   string
	}{
		{jumped(24 * time.Hour), "clock", "the clock says 2026-01-03T12:00:00.345Z and has been doubted since 2026-01-02T11:00:00.345Z: " +
			"it is 24h0m0s ahead of steady time, 2026-01-02T12:00:00.345Z\n" +
			"history ages by steady time, and is not deleted by the clock; if the clock is right, say so: hdsd clock confirm\n"},
		{nil, "clock confirm --author ann", "history ages by the clock again, which was doubted: it was 24h0m0s ahead of steady time, 2026-01-02T12:00:00.345Z\n"},
		{nil, "clock", "the clock says 2026-01-03T12:00:00.345Z and is believed\n"},
		{nil, "clock confirm --author bob", "the clock was not doubted: nothing has changed\n"},
		{jumped(-time.Hour), "clock confirm --author eve", "history ages by the clock again, which was doubted: it was 1h0m0s behind steady time, 2026-01-02T12:00:00.345Z\n"},
	} {
		if step.before != nil {
			control.clock = step.before
		}
		exit, out, errors := hdsd(t, append(strings.Fields(step.line), "--server", address)...)
		if exit != exitDone || out != step.want {
			t.Errorf("%s: %d, %q, %q; want %q", step.line, exit, out, errors, step.want)
		}
	}
	if control.ended != "eve" {
		t.Errorf("%q confirmed", control.ended)
	}
	exit, _, errors := hdsd(t, "clock", "confirm", "--author", "full", "--server", address)
	if want := "hdsd: nothing has changed, confirm the clock again once the disk works: no space left\n"; exit != exitFailed || errors != want {
		t.Errorf("on a full disk: %d, %q", exit, errors)
	}
	for _, line := range []string{"clock set", "clock confirm now"} {
		if exit, _, _ := hdsd(t, append(strings.Fields(line), "--server", address)...); exit != exitUsage {
			t.Errorf("%s: %d", line, exit)
		}
	}
}
