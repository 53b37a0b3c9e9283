package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestAGapSaysWhy: the disk did not take transitions, or a salvage lost them.
func TestAGapSaysWhy(t *testing.T) {
	at := timestamppb.New(noon)
	for n, want := range map[uint32]string{0: ": the database was damaged; ", 1: ": the disk did not take 1 transition; ", 2: ": the disk did not take 2 transitions; "} {
		page := &hdsdv1.ListTransitionsResponse{Missing: &hdsdv1.Missing{Gaps: []*hdsdv1.Gap{{Start: at, End: at, Transitions: n}}}}
		if rows := withGaps(page, false); len(rows) != 1 || !strings.Contains(rows[0].GetReason(), want) {
			t.Errorf("%d transitions: %v", n, rows)
		}
	}
}

// TestHistoryShowsItsGaps as rows among the transitions.
func TestHistoryShowsItsGaps(t *testing.T) {
	at := func(n int) *timestamppb.Timestamp { return timestamppb.New(noon.Add(time.Duration(n) * time.Second)) }
	for _, newest := range []bool{false, true} {
		gaps := []*hdsdv1.Gap{{Start: at(2), End: at(3), Transitions: 7}, {Start: at(6), End: at(6), Transitions: 1}}
		page := &hdsdv1.ListTransitionsResponse{Missing: &hdsdv1.Missing{Gaps: gaps}}
		for _, n := range []int{1, 4, 5} {
			page.Transitions = append(page.Transitions, &hdsdv1.Transition{Time: at(n), Cluster: "web"})
		}
		if newest {
			slices.Reverse(page.Transitions)
			slices.Reverse(gaps)
		}
		var seconds []time.Duration
		for _, row := range withGaps(page, newest) {
			seconds = append(seconds, row.GetTime().AsTime().Sub(noon)/time.Second)
			if isGap := strings.HasPrefix(row.GetReason(), "gap until 2026-01-02T12:00:0"); isGap != (row.GetCluster() == "") {
				t.Errorf("%v", row)
			}
		}
		want := []time.Duration{1, 2, 4, 5, 6}
		if newest {
			slices.Reverse(want)
		}
		if !slices.Equal(seconds, want) {
			t.Errorf("newest first %v: seconds %v, want %v", newest, seconds, want)
		}
	}
}
