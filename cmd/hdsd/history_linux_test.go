package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// manyChanges is a page of a history of so many changes.
func manyChanges(changes int, r *hdsdv1.ListTransitionsRequest) *hdsdv1.ListTransitionsResponse {
	answer := &hdsdv1.ListTransitionsResponse{}
	for n := range changes {
		if r.GetNewestFirst() {
			n = changes - 1 - n
		}
		if int32(len(answer.Transitions)) == r.GetPageSize() {
			answer.NextPageToken = "more"
			break
		}
		answer.Transitions = append(answer.Transitions, &hdsdv1.Transition{Time: timestamppb.New(noon.Add(time.Duration(n) * time.Second)), Cluster: fmt.Sprintf("change-%d.", n)})
	}
	return answer
}

// TestHistoryOnATerminal shows the latest changes, and says so where there are more.
func TestHistoryOnATerminal(t *testing.T) {
	f := newFake()
	f.changes = func(r *hdsdv1.ListTransitionsRequest) *hdsdv1.ListTransitionsResponse { return manyChanges(60, r) }
	server := serveFake(t, f)
	for _, test := range []struct {
		args  []string
		rows  int
		first string
		says  string
	}{
		{nil, 50, "change-10.", "the latest 50 changes; '--since 1d' or '--limit 0' shows more"},
		{[]string{"--newest-first"}, 50, "change-59.", "the latest 50"},
		{[]string{"--limit", "0"}, 60, "change-0.", ""},
		{[]string{"--limit", "3"}, 3, "change-0.", ""},
		{[]string{"--since", "30d"}, 60, "change-0.", ""},
	} {
		seen := onTerminal(t, 150, append([]string{"history", "--server", server, "--color", "never"}, test.args...)...)
		rows := 0
		first, says := "", ""
		for line := range strings.Lines(seen) {
			switch {
			case strings.HasPrefix(line, "hdsd: "):
				says = line
			case strings.Contains(line, "change-"):
				if rows++; rows == 1 {
					first = line
				}
			}
		}
		if rows != test.rows || !strings.Contains(first, test.first) || !strings.Contains(says, test.says) || test.says == "" && says != "" {
			t.Errorf("%v: %d rows, the first %q; %q", test.args, rows, first, says)
		}
	}
	f = newFake()
	f.changes = func(r *hdsdv1.ListTransitionsRequest) *hdsdv1.ListTransitionsResponse { return manyChanges(50, r) }
	if seen := onTerminal(t, 150, "history", "--server", serveFake(t, f)); strings.Contains(seen, "hdsd: ") || !strings.Contains(seen, "change-0.") {
		t.Errorf("all there is: %s", seen)
	}
	if _, out, errors := hdsd(t, "history", "--server", server); strings.Count(out, "\n") != 61 || errors != "" {
		t.Errorf("in a pipe: %s%s", out, errors)
	}
}
