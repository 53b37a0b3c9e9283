package query

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"hdsd/api"
	"hdsd/coordinator/feed"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
	"hdsd/source/sample"
)

// busyCore answers, but makes no snapshot.
type busyCore struct {
	*fake
	snapshots *Snapshots
}

// Snapshot implements Core.
func (c busyCore) Snapshot(ctx context.Context) (*Snapshot, error) {
	return c.snapshots.Newer(ctx, c.done)
}

// NextSnapshot implements Core.
func (c busyCore) NextSnapshot(ctx context.Context) (*Snapshot, error) {
	return c.snapshots.Next(ctx, c.done)
}

// TestWhatWaitsHoldsNoTurn: however many queries wait for a snapshot or for the history, those that
// need neither are answered.
func TestWhatWaitsHoldsNoTurn(t *testing.T) {
	none, err := feed.Open(&configv1.Config{}, feed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	history := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		core := busyCore{newFake(sample.Web("web", "10.0.0.1:80")), NewSnapshots()}
		core.done = make(chan struct{})
		b := New(Options{Core: core, Store: history, Feed: none, HDS: hds.NewServer(hds.Options{}, deaf{}), Process: func() Process { return Process{} }})
		service := api.NewService(b)
		service.Limit(api.Limits{})
		handler, err := service.Handler()
		if err != nil {
			t.Fatal(err)
		}
		ask := func(path string) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			return w.Code
		}
		waiting := []string{"/v1/status", "/v1/overview", "/v1/clusters", "/v1/checkers", "/v1/paths", "/v1/incidents", "/v1/incidents?cluster=web"}
		var all sync.WaitGroup
		for _, path := range waiting {
			for range 100 {
				all.Go(func() {
					if code := ask(path); code != http.StatusServiceUnavailable {
						t.Errorf("%s, when hdsd stops: %d", path, code)
					}
				})
			}
		}
		synctest.Wait()
		for _, path := range []string{"/v1/transitions", "/v1/endpoints", "/v1/events", "/v1/incidents?open=true&allowPartial=true"} {
			if code := ask(path); code != http.StatusOK {
				t.Errorf("%s, while %d others wait: %d", path, 100*len(waiting), code)
			}
		}
		close(core.done)
		all.Wait()
	})
}
