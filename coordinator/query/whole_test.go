package query

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/health"
)

func TestDataPlanesCountOnce(t *testing.T) {
	client := func(id string, stale, refused int) api.Client {
		return api.Client{ID: id, Kind: api.KindSubscriber, Stale: stale, Error: refused}
	}
	got := countPlanes([]api.Client{
		client("a", 0, 0), client("a", 1, 0), client("b", 0, 1), client("b", 1, 0), client("b", 0, 0), client("c", 0, 0), client("d", 1, 0),
	}, map[string]bool{"d": true})
	if want := (api.PlaneCounts{Synced: 1, Behind: 1, Refusing: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCheckersByZone(t *testing.T) {
	in := func(zone string, connected, trusted bool, lost *api.Lost) api.Checker {
		return api.Checker{Checker: health.Checker{Locality: health.Locality{Region: "eu", Zone: zone}}, Connected: connected, Trusted: trusted, Lost: lost}
	}
	got := zonesOf([]api.Checker{in("b", true, true, nil), in("a", true, false, nil), in("a", true, true, nil), in("a", false, true, &api.Lost{}), in("b", false, true, nil)})
	want := []api.CheckersOfZone{{Zone: "eu/a", Connected: 2, Troubled: 1, Lost: 1}, {Zone: "eu/b", Connected: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
