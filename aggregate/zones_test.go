package aggregate

import (
	"fmt"
	"math"
	"testing"
	"time"

	"hdsd/health"
)

// TestZonesAreForgotten: a zone without endpoints, checkers and doubted paths leaves
// nothing behind.
func TestZonesAreForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	a := New(Options{Doubt: Doubt{PathDisagreements: 2}})
	timing := Timing{Interval: time.Second, Timeout: time.Second, UnhealthyThreshold: 1, ReportInterval: time.Second}
	for round := range 40 {
		zone := func(s string) health.Locality { return health.Locality{Region: fmt.Sprint(round), Zone: s} }
		for id := range health.EndpointID(30) {
			a.Set(Endpoint{ID: id, Zone: zone("a"), Timing: timing}, health.Verdict{Status: health.Healthy, Since: now})
		}
		said := map[string]health.Status{"a": health.Healthy, "b": health.Healthy, "c": health.Timeout}
		for _, s := range []string{"a", "b", "c"} {
			a.Connected(now, health.Checker{ID: s, Locality: zone(s)})
			for id := range health.EndpointID(30) {
				a.Assign(now, id, s)
			}
		}
		for range 20 {
			now = now.Add(time.Second)
			for s, status := range said {
				var votes []health.Vote
				for id := range health.EndpointID(30) {
					votes = append(votes, health.Vote{Endpoint: id, Status: status})
				}
				a.Report(now, s, votes)
			}
		}
		if !a.records.anyCut() {
			t.Fatal("no path is doubted")
		}
		for id := range health.EndpointID(30) {
			a.Remove(id)
		}
		for s := range said {
			a.Lost(s)
		}
		for range 20 {
			now = now.Add(time.Second)
			a.Tick(now)
		}
	}
	if n := len(a.records.paths); n != 0 {
		t.Errorf("%d paths are left", n)
	}
	if n := len(a.zones.entries); n > 4 {
		t.Errorf("room for %d zones, where there were 3 at a time", n)
	}
	if n := len(a.zones.numbers); n != 1 {
		t.Errorf("%d zones are left, want only the empty one", n)
	}
}

// TestZonesHaveNoLimit: there may be more than 65,535 zones.
func TestZonesHaveNoLimit(t *testing.T) {
	a := New(Options{})
	for i := range math.MaxUint16 + 2 {
		a.Set(Endpoint{ID: health.EndpointID(i), Zone: health.Locality{Zone: fmt.Sprint(i)}}, health.Verdict{})
	}
	a.Connected(time.Unix(0, 0), health.Checker{ID: "c", Locality: health.Locality{Zone: "last"}})
	a.Assign(time.Unix(0, 0), 7, "c")
	if zones := a.Verdict(7).Zones; len(zones) != 1 || zones[0].Zone != "last" {
		t.Errorf("the checker's zone is shown as %+v", zones)
	}
}
