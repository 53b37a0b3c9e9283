package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestHistoryOfAKind shows events, and with all of them changes of health where they belong.
func TestHistoryOfAKind(t *testing.T) {
	f := newFake()
	address := serveFake(t, f)
	for name, args := range map[string][]string{
		"history-kind": {"--kind", "checker", "--checker", "checker-1"}, "history-kind-all": {"--kind", "all"},
		"history-kind-newest": {"--kind", "ALL", "--newest-first", "--limit", "4"},
	} {
		for _, format := range []string{"table", "json", "csv"} {
			status, out, errors := hdsd(t, append([]string{"history", "--server", address, "-o", format}, args...)...)
			if status != exitDone || errors != "" {
				t.Errorf("%s -o %s: exit status %d, %s", name, format, status, errors)
			}
			golden(t, name+"."+format, out)
		}
	}
	if !slices.ContainsFunc(f.events, func(r *hdsdv1.ListEventsRequest) bool { return r.GetKind() == "" }) {
		t.Errorf("all kinds are asked for as %v", f.events)
	}
	if !slices.ContainsFunc(f.events, func(r *hdsdv1.ListEventsRequest) bool {
		return r.GetKind() == "CHECKER" && r.GetChecker() == "checker-1"
	}) {
		t.Errorf("asked for %v", f.events)
	}
	if status, _, errors := hdsd(t, "history", "--kind", "health", "--checker", "checker-1", "--server", address); status != exitDone {
		t.Errorf("exit status %d, %s", status, errors)
	}
	if r := f.transitions[len(f.transitions)-1]; r.GetChecker() != "checker-1" {
		t.Errorf("asked for %v", r)
	}
}

// TestKindWordsAreKinds: what shells offer exists.
func TestKindWordsAreKinds(t *testing.T) {
	for _, word := range kindWords() {
		known := strings.ToUpper(word) == kindAll || strings.ToUpper(word) == kindHealth
		for _, name := range hdsdv1.Event_Kind_name {
			known = known || strings.HasPrefix(name, strings.ToUpper(word))
		}
		if !known {
			t.Errorf("--kind %s is no kind", word)
		}
	}
}

// Annotate notes what it is asked for.
func (f *fakeControl) Annotate(_ context.Context, r *hdsdv1.AnnotateRequest) (*hdsdv1.AnnotateResponse, error) {
	f.annotated = append(f.annotated, r)
	at := r.GetTime()
	if at == nil {
		at = timestamppb.New(noon)
	}
	return &hdsdv1.AnnotateResponse{Event: &hdsdv1.Event{Time: at, Cluster: r.GetCluster(), Author: r.GetAuthor(), Text: r.GetText()}}, nil
}

func TestAnnotate(t *testing.T) {
	control, address := serveFreezable(t)
	for want, args := range map[string][]string{
		"noted at 2026-01-02T12:00:00.345Z on all clusters, by ann\n": {"rolled out"},
		"noted at 2026-01-01T14:05:00.000Z on cluster web, by ann\n":  {"switch replaced", "--cluster", "web", "--at", "2026-01-01T14:05:00Z"},
	} {
		status, out, errors := hdsd(t, append([]string{"annotate", "--server", address, "--author", "ann"}, args...)...)
		if status != exitDone || out != want {
			t.Errorf("%q: exit status %d, %q, %s", args, status, out, errors)
		}
	}
	if len(control.annotated) != 2 || !slices.ContainsFunc(control.annotated, func(r *hdsdv1.AnnotateRequest) bool {
		return r.GetText() == "switch replaced" && r.GetTime().AsTime().Equal(time.Date(2026, 1, 1, 14, 5, 0, 0, time.UTC))
	}) {
		t.Errorf("noted: %v", control.annotated)
	}
	for _, args := range [][]string{{}, {"two", "words"}, {"x", "--at", "then"}} {
		if status, _, errors := hdsd(t, append([]string{"annotate", "--server", address}, args...)...); status != exitUsage {
			t.Errorf("%q: exit status %d, %s", args, status, errors)
		}
	}
}
