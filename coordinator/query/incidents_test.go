package query

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/incident"
	"hdsd/store"
)

// incidentsOf lists the incidents of a cluster, while somebody reads the history.
func incidentsOf(t *testing.T, b *Backend, cluster string) ([]incident.Incident, error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { b.ReadIncidents(ctx) })
	defer func() { stop(); reading.Wait() }()
	page, err := b.Incidents(t.Context(), api.IncidentQuery{Query: incident.Query{Cluster: cluster}})
	if page.Partial {
		t.Error("an answer that waits for the history is partial")
	}
	return page.Incidents, err
}

// TestIncidentsCanBeAskedForBeforeTheHistoryIsRead: nobody reads it at first.
func TestIncidentsCanBeAskedForBeforeTheHistoryIsRead(t *testing.T) {
	b, _ := newPast(t)
	e := endpoint("web", "10.0.0.1:80")
	b.Store.Append([]health.Transition{{Time: time.Now(), Endpoint: e, From: health.Healthy, To: health.Unhealthy}})
	if err := b.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	patchy := api.IncidentQuery{Query: incident.Query{Cluster: "web"}, AllowPartial: true}
	if page, err := b.Incidents(t.Context(), patchy); err != nil || !page.Partial || len(page.Incidents) > 0 {
		t.Errorf("before the history is read: %+v, %v", page, err)
	}
	if all, err := incidentsOf(t, b, "web"); err != nil || len(all) != 1 {
		t.Errorf("when it is read: %+v, %v", all, err)
	}
	if page, err := b.Incidents(t.Context(), patchy); err != nil || !page.Partial || len(page.Incidents) != 1 {
		t.Errorf("when nobody reads on: %+v, %v", page, err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has gone"))
	if _, err := b.Incidents(gone, api.IncidentQuery{}); err == nil {
		t.Error("a caller that has gone got an answer")
	}
	close(b.Core.(*fake).done)
	if _, err := b.Incidents(t.Context(), api.IncidentQuery{}); !errors.Is(err, api.ErrStopping) {
		t.Errorf("when hdsd stops: %v", err)
	}
}

// TestIncidentsHaveWhatHasJustHappened, before it is on disk.
func TestIncidentsHaveWhatHasJustHappened(t *testing.T) {
	b, _ := newPast(t)
	for n := range 20 {
		e := endpoint(fmt.Sprint("web-", n), "10.0.0.1:80")
		b.Store.Append([]health.Transition{{Time: time.Now(), Endpoint: e, From: health.Healthy, To: health.Unhealthy}})
		if all, err := incidentsOf(t, b, e.Cluster); err != nil || len(all) != 1 || !all[0].End.IsZero() {
			t.Fatalf("%s: %+v, %v", e.Cluster, all, err)
		}
		b.Store.Append([]health.Transition{{Time: time.Now(), Endpoint: e, From: health.Unhealthy, To: health.Healthy}})
		if all, err := incidentsOf(t, b, e.Cluster); err != nil || len(all) != 1 || all[0].End.IsZero() {
			t.Fatalf("%s: %+v, %v", e.Cluster, all, err)
		}
	}
}

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
		found, err := incidentsOf(t, b, e.Cluster)
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
	if found, err := incidentsOf(t, b, "gone"); err != nil || len(found) != 1 || found[0].Cause != incident.Network {
		t.Errorf("after the clock was set back: %+v, %v", found, err)
	}
	b.incidents = newIncidents(b.Core, b.Store) // as after a restart
	if got := cause(); got != incident.Network {
		t.Errorf("after a restart: cause %d", got)
	}
}
