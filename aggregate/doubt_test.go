package aggregate_test

import (
	"testing"
	"time"

	"hdsd/aggregate"
)

// TestLimitsOfDoubt: limits that are missing or senseless are as documented; the
// others stay.
func TestLimitsOfDoubt(t *testing.T) {
	usual := aggregate.Doubt{
		Disagreements: 8, Share: 0.2, PathDisagreements: 20, PathShare: 0.5, PathNoise: 0.002,
		Release: 0.05, ReleaseAfter: 3 * time.Second,
	}
	own := aggregate.Doubt{
		Disagreements: 1, Share: 1, PathDisagreements: 2, PathShare: 0.9, PathNoise: 0.1,
		Release: 0.3, ReleaseAfter: time.Minute,
	}
	some := usual
	some.PathDisagreements, some.Release = 3, 0.01
	for name, test := range map[string]struct{ given, want aggregate.Doubt }{
		"none":     {aggregate.Doubt{}, usual},
		"all":      {own, own},
		"some":     {aggregate.Doubt{PathDisagreements: 3, Release: 0.01}, some},
		"negative": {aggregate.Doubt{Disagreements: -1, Share: -1, PathDisagreements: -1, PathShare: -1, PathNoise: -1, Release: -1, ReleaseAfter: -1}, usual},
	} {
		if got := test.given.WithDefaults(); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
