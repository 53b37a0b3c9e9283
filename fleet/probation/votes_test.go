package probation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/fleet/probation"
	"hdsd/health"
)

func TestTheLatestVotesAreKept(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v := probation.New()
	v.Report(now, "unknown", []health.Vote{{Endpoint: 1, Status: health.Healthy}})
	v.Begin("b")
	v.Begin("a")
	v.Report(now, "b", []health.Vote{{Endpoint: 1, Status: health.Healthy}, {Endpoint: 2, Status: health.Timeout}})
	v.Report(now, "a", []health.Vote{{Endpoint: 1, Status: health.Healthy}})
	v.Report(now.Add(time.Second), "b", []health.Vote{{Endpoint: 1, Status: health.Unhealthy, HTTPStatusCode: 503}})
	want := []health.Observation{
		{Checker: "a", Status: health.Healthy, Time: now, Disbelieved: "why"},
		{Checker: "b", Status: health.Unhealthy, HTTPStatusCode: 503, Time: now.Add(time.Second), Disbelieved: "why"},
	}
	if diff := cmp.Diff(want, v.Observations(1, "why")); diff != "" {
		t.Error(diff)
	}
	if got := v.On("b", []health.EndpointID{2, 3}); len(got) != 1 || got[0].Status != health.Timeout {
		t.Errorf("%v", got)
	}
	v.Remove(1)
	v.Forget("a")
	if _, ok := v.Of("b", 1); ok || len(v.Observations(1, "")) > 0 {
		t.Error("what is gone is kept")
	}
	if v.Begin("b"); len(v.On("b", []health.EndpointID{2})) > 0 {
		t.Error("votes of another stream are kept")
	}
}
