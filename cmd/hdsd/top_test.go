package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// TestTop: 10.0.0.1 flaps, 10.0.0.2 is down for long, 10.0.0.3 is down still, and checker-2 says
// the contrary each time. Votes of "new" are of its warm-up, so nobody blames it for them.
func TestTop(t *testing.T) {
	const good, bad = corev3.HealthStatus_HEALTHY, corev3.HealthStatus_UNHEALTHY
	var all []*hdsdv1.Transition
	began := noon.Add(-4 * time.Hour)
	change := func(address string, after time.Duration, to corev3.HealthStatus) {
		from := bad
		if to == bad {
			from = good
		}
		all = append(all, &hdsdv1.Transition{
			Time: timestamppb.New(began.Add(after)), Cluster: "web", Address: address + ":8080", From: from, To: to,
			Observations: []*hdsdv1.Observation{{Checker: "checker-1", Status: to}, {Checker: "checker-2", Status: from}, {Checker: "gone", Status: corev3.HealthStatus_UNKNOWN}, {Checker: "new", Status: from, Disbelieved: health.WarmingUp}},
		})
	}
	for n := range 6 {
		change("10.0.0.1", time.Duration(n)*time.Minute, []corev3.HealthStatus{bad, good}[n%2])
	}
	change("10.0.0.2", 10*time.Minute, bad)
	change("10.0.0.2", 2*time.Hour+10*time.Minute, good)
	change("10.0.0.3", 3*time.Hour, bad)
	f := newFake()
	f.changes = func(r *hdsdv1.ListTransitionsRequest) *hdsdv1.ListTransitionsResponse {
		if r.GetPageToken() == "" {
			return &hdsdv1.ListTransitionsResponse{Transitions: all[:4], NextPageToken: "x"}
		}
		return &hdsdv1.ListTransitionsResponse{Transitions: all[4:]}
	}
	address := serveFake(t, f)
	until := began.Add(3*time.Hour + 30*time.Minute).Format(time.RFC3339Nano)
	for _, format := range []string{"table", "json", "csv"} {
		status, out, errors := hdsd(t, "top", "--server", address, "-o", format, "--since", "2026-01-01", "--until", until, "--limit", "2")
		if status != exitDone || errors != "" {
			t.Errorf("-o %s: exit status %d, %s", format, status, errors)
		}
		golden(t, "top."+format, out)
	}
	_, out, _ := hdsd(t, "top", "--server", address, "-o", "csv", "--since", "2026-01-01", "--until", until)
	for _, want := range []string{
		"flaps,web,10.0.0.1:8080,,,6,3,60,", "recovery,web,10.0.0.2:8080,,,2,1,7200,,", "recovery,web,10.0.0.3:8080,,,1,1,1800,2026-01-02T11:00:00.345Z",
		fmt.Sprintf("checkers,,,,checker-2,,,,,%d,%d,1.0000,", len(all), len(all)), "checkers,,,,checker-1,,,,,9,0,0.0000,",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing from\n%s", want, out)
		}
	}
	if strings.Contains(out, "checkers,,,,new,") {
		t.Errorf("a checker is blamed for votes of its warm-up:\n%s", out)
	}
	for _, args := range [][]string{{"a", "b"}, {"--limit", "0"}, {"--since", "then"}, {"-o", "xml"}, {"--unhealthy"}} {
		if status, _, errors := hdsd(t, append([]string{"top", "--server", address}, args...)...); status != exitUsage {
			t.Errorf("%q: exit status %d, %s", args, status, errors)
		}
	}
}
