package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// ListAudit gives one entry a page.
func (f *fakeControl) ListAudit(_ context.Context, r *hdsdv1.ListAuditRequest) (*hdsdv1.ListAuditResponse, error) {
	f.audited = r
	if r.GetPageToken() == "" {
		return &hdsdv1.ListAuditResponse{NextPageToken: "1", Entries: []*hdsdv1.AuditEntry{{
			Time: timestamppb.New(noon), Identity: "spiffe://prod/ann", Address: "10.0.0.1:4711", Author: "ann@here", Action: "SetOverride",
			Target: "web 10.0.0.7:8080", After: "drained by ann@here: power works", Reason: "power works",
		}}}, nil
	}
	return &hdsdv1.ListAuditResponse{Entries: []*hdsdv1.AuditEntry{{
		Time: timestamppb.New(noon.Add(time.Hour)), Address: "10.0.0.2:4712", Author: "bob", Action: "Unfreeze", Before: "frozen since then by ann@here: moving",
	}}}, nil
}

// PreviewOverride would decide as many endpoints as the fake was told.
func (f *fakeControl) PreviewOverride(_ context.Context, r *hdsdv1.SetOverrideRequest) (*hdsdv1.PreviewOverrideResponse, error) {
	if f.decides < 0 {
		return nil, status.Error(codes.Unimplemented, "unknown method")
	}
	return &hdsdv1.PreviewOverrideResponse{
		Override: &hdsdv1.Override{Cluster: r.GetCluster(), Endpoints: uint32(f.decides)}, Replaced: anOverride(), TotalEndpoints: 1000, Panics: f.panics,
	}, nil
}

func TestAudit(t *testing.T) {
	control, address := serveFreezable(t)
	for _, format := range []string{"table", "json", "csv"} {
		exit, out, errors := hdsd(t, "audit", "--server", address, "-o", format, "--newest-first")
		if exit != exitDone || errors != "" {
			t.Errorf("-o %s: exit status %d, %s", format, exit, errors)
		}
		golden(t, "audit."+format, out)
	}
	if !control.audited.GetNewestFirst() || control.audited.GetStartTime() != nil {
		t.Errorf("asked for %v", control.audited)
	}
	if exit, _, errors := hdsd(t, "audit", "web", "--server", address); exit != exitUsage || !strings.Contains(errors, "no arguments") {
		t.Errorf("with an argument: exit status %d, %s", exit, errors)
	}
}

func TestLargeOverridesAreConfirmed(t *testing.T) {
	control, address := serveFreezable(t)
	for _, test := range []struct {
		decides int
		flags   string
		set     bool
		exit    int
		says    string
	}{
		{20, "", true, exitDone, ""},
		{100, "", true, exitDone, ""},
		{101, "", false, exitFailed, "the override would decide 101 of 1000 endpoints: give --yes"},
		{101, "--yes", true, exitDone, ""},
		{1, "--dry-run", false, exitDone, "would decide 1 of 1000 endpoints; nothing has changed\nwould replace: everything in /b"},
		{101, "--dry-run --yes", false, exitDone, "would decide 101 of 1000"},
		{-1, "", true, exitDone, ""}, // an older hdsd
		{-1, "--dry-run", false, exitFailed, "unknown method"},
	} {
		control.set, control.decides = nil, test.decides
		args := append([]string{"override", "drain", "web", "--reason", "x", "--server", address}, strings.Fields(test.flags)...)
		exit, out, errors := hdsd(t, args...)
		if exit != test.exit || (control.set != nil) != test.set || !strings.Contains(out+errors, test.says) {
			t.Errorf("%d endpoints, %q: exit status %d, %v, %s%s", test.decides, test.flags, exit, control.set, out, errors)
		}
	}
}

// TestOverridesThatEnvoysWouldDisregard are told before, and set all the same.
func TestOverridesThatEnvoysWouldDisregard(t *testing.T) {
	control, address := serveFreezable(t)
	control.panics = slices.Repeat([]string{"cluster web: Envoy would send traffic to all 3 endpoints"}, 7)
	const says = "cluster web: Envoy would send traffic to all 3 endpoints\n"
	const more, advice = "and so for 2 more clusters\n", "the cluster's healthy_panic_threshold says when: with 0, Envoy never does that\n"
	for _, flags := range []string{"", "--yes", "--dry-run"} {
		control.set = nil
		exit, out, errors := hdsd(t, append([]string{"override", "drain", "web", "--reason", "x", "--server", address}, strings.Fields(flags)...)...)
		where, prefix := errors, "hdsd: "
		if flags == "--dry-run" {
			where, prefix = out, ""
		}
		if want := strings.Repeat(prefix+says, 5) + prefix + more + prefix + advice; exit != exitDone || (control.set != nil) != (flags != "--dry-run") || !strings.HasSuffix(where, want) {
			t.Errorf("%q: exit status %d, %v, %s%s", flags, exit, control.set, out, errors)
		}
	}
}

func TestConfirmation(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "y": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		var asked strings.Builder
		ok, err := confirmed(strings.NewReader(answer), &asked, "really")
		if ok != want || (err == nil) != want || asked.String() != "really. Go on? [y/N] " {
			t.Errorf("%q: %t, %v, asked %q", answer, ok, err, asked.String())
		}
	}
	failure := errors.New("hung up")
	if _, err := confirmed(broken{failure}, &strings.Builder{}, "really"); !errors.Is(err, failure) {
		t.Error(fmt.Sprint("a terminal that hangs up: ", err))
	}
}

// broken cannot be read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
