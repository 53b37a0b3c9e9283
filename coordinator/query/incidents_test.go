package query

import (
	"testing"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/incident"
	"hdsd/store"
)

// TestIncidentsTakeTheirCauseFromRecordedEvents, those too that come on disk after the
// incident was asked for.
func TestIncidentsTakeTheirCauseFromRecordedEvents(t *testing.T) {
	b, _ := newPast(t)
	e := endpoint("web", "10.0.0.1:80")
	now := time.Now()
	cause := func() incident.Cause {
		t.Helper()
		if err := b.Store.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		found, _, err := b.Incidents(t.Context(), incident.Query{Cluster: e.Cluster})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0].Cause
	}
	b.Store.Append([]health.Transition{{Time: now, Endpoint: e, From: health.Healthy, To: health.Unhealthy, Observations: []health.Observation{
		{Checker: "c1", Status: health.Unhealthy, Time: now}, {Checker: "c2", Status: health.Healthy, Time: now},
	}}})
	if got := cause(); got != incident.Endpoint {
		t.Errorf("without events: cause %d", got)
	}
	b.Store.AppendEvents([]store.Event{{Time: now.Add(2 * time.Second), Kind: storev1.EventKind_CHECKER_DOUBTED, Checker: "c2", Text: "x"}})
	if got := cause(); got != incident.Endpoint {
		t.Errorf("when who said up is doubted: cause %d", got)
	}
	b.Store.AppendEvents([]store.Event{{Time: now.Add(time.Second), Kind: storev1.EventKind_CHECKER_DOUBTED, Checker: "c1", Text: "x"}})
	if got := cause(); got != incident.Checkers {
		t.Errorf("when who said down is doubted: cause %d", got)
	}
	b.Store.AppendEvents([]store.Event{{Time: now.Add(3 * time.Second), Kind: storev1.EventKind_PATH_DOUBTED, Locality: e.Locality, Text: "x"}})
	if got := cause(); got != incident.Network {
		t.Errorf("when a path to the zone is doubted: cause %d", got)
	}
	b.incidents.seen = now.Add(time.Hour) // the clock was set back
	other := endpoint("gone", "10.0.0.1:80")
	other.Locality.Zone = "b"
	b.Store.Append([]health.Transition{{Time: now.Add(2 * time.Second), Endpoint: other, From: health.Healthy, To: health.Unhealthy}})
	b.Store.AppendEvents([]store.Event{{Time: now.Add(4 * time.Second), Kind: storev1.EventKind_PATH_DOUBTED, Locality: other.Locality, Text: "x"}})
	if err := b.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, _, err := b.Incidents(t.Context(), incident.Query{Cluster: "gone"}); err != nil || len(found) != 1 || found[0].Cause != incident.Network {
		t.Errorf("after the clock was set back: %+v, %v", found, err)
	}
	b.incidents = newIncidents() // as after a restart
	if got := cause(); got != incident.Network {
		t.Errorf("after a restart: cause %d", got)
	}
}
