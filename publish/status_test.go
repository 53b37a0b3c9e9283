package publish

import (
	"testing"

	"hdsd/health"
)

func TestStatusesAreUnknownUntilSet(t *testing.T) {
	var s Statuses
	if s.Set(Health{ID: 3}) || s.Get(3) != health.Unknown {
		t.Error("Unknown is a change")
	}
	if !s.Set(Health{ID: 3, Status: health.Unhealthy}) || s.Set(Health{ID: 3, Status: health.Unhealthy}) || s.Get(3) != health.Unhealthy || s.Get(2) != health.Unknown {
		t.Errorf("the verdicts are %v", s)
	}
	if got := Worst([]health.EndpointID{2, 3}, s.Get); got != health.Unhealthy {
		t.Errorf("the worst is %v", got)
	}
}

func TestStatusesOfOtherReleasesAreUnknown(t *testing.T) {
	for value, want := range map[int64]health.Status{-1: health.Unknown, 2: health.Unhealthy, 77: health.Unknown, 258: health.Unknown} {
		if got := Status(value); got != want {
			t.Errorf("%d is %v, want %v", value, got, want)
		}
	}
}
