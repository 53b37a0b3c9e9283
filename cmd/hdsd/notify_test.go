package main

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func (f *fakeControl) ListReceivers(context.Context, *hdsdv1.ListReceiversRequest) (*hdsdv1.ListReceiversResponse, error) {
	return &hdsdv1.ListReceiversResponse{Receivers: []*hdsdv1.Receiver{
		{Name: "oncall", Type: "alertmanager", Open: 2, LastSuccess: timestamppb.New(noon)},
		{
			Name: "hook", Type: "webhook", Queued: 1, FailingSince: timestamppb.New(noon), LastError: "no route", Dropped: 1,
			DeadLetters: []*hdsdv1.Receiver_DeadLetter{{Time: timestamppb.New(noon), Summary: "cluster web", Error: "refused"}},
		},
	}}, nil
}

func (f *fakeControl) NotifyTest(_ context.Context, r *hdsdv1.NotifyTestRequest) (*hdsdv1.NotifyTestResponse, error) {
	if r.GetName() == "oncall" && r.GetAuthor() == "ann" {
		return &hdsdv1.NotifyTestResponse{Ok: true, Answer: "200 OK"}, nil
	}
	return &hdsdv1.NotifyTestResponse{Answer: "no route"}, nil
}

func TestNotify(t *testing.T) {
	_, address := serveFreezable(t)
	exit, out, errors := hdsd(t, "notify", "list", "--output", "csv", "--server", address)
	const want = "name,type,open,queued,last_success,failing_since,last_error,dropped,dead_letters\n" +
		"oncall,alertmanager,2,0,2026-01-02T12:00:00.345Z,,,0,\n" +
		"hook,webhook,0,1,,2026-01-02T12:00:00.345Z,no route,1,2026-01-02T12:00:00.345Z cluster web: refused\n"
	if exit != exitDone || out != want || errors != "" {
		t.Errorf("%d, %q, %q; want %q", exit, out, errors, want)
	}
	t.Setenv("COLUMNS", "80")
	if _, out, _ := hdsd(t, "notify", "list", "--server", address); strings.Count(out, "\n") != 3 || !strings.Contains(out, "no route") {
		t.Errorf("a line each is\n%s", out)
	}
	if exit, out, _ := hdsd(t, "notify", "test", "oncall", "--author", "ann", "--server", address); exit != exitDone || out != "oncall took the test: 200 OK\n" {
		t.Errorf("%d, %q", exit, out)
	}
	if exit, _, errors := hdsd(t, "notify", "test", "hook", "--server", address); exit != exitFailed || !strings.Contains(errors, "hook did not take the test: no route") {
		t.Errorf("%d, %q", exit, errors)
	}
	for _, wrong := range [][]string{{"notify"}, {"notify", "test"}, {"notify", "tset"}} {
		if exit, _, errors := hdsd(t, wrong...); exit != exitUsage || errors == "" {
			t.Errorf("%v: %d, %q", wrong, exit, errors)
		}
	}
}
