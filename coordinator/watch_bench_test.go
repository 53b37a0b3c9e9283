package coordinator

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"hdsd/api"
	"hdsd/coordinator/query"
	"hdsd/health"
	"hdsd/store"
)

// subscriber takes the events of a stream and counts the transitions.
type subscriber struct {
	http.ResponseWriter
	synced func()
	left   int
	done   context.CancelFunc
}

func (s *subscriber) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("event: synced\n")) {
		s.synced()
	}
	if s.left -= bytes.Count(b, []byte("event: transition\n")); s.left <= 0 {
		s.done()
	}
	return len(b), nil
}

func (s *subscriber) Flush() {}

// BenchmarkWatch lets 1,000 streams of events follow 10,000 transitions, from the history to the bytes for a
// socket.
func BenchmarkWatch(b *testing.B) {
	const subscribers, transitions = 1000, 10_000
	l := newLab(b)
	stop := make(chan struct{})
	go l.core.run(stop)
	defer func() { close(stop); <-l.core.done }()
	for b.Loop() {
		history, err := store.Open(b.Context(), b.TempDir(), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		handler, err := api.NewService(query.New(query.Options{Core: queryCore{l.core}, Store: history})).Handler()
		if err != nil {
			b.Fatal(err)
		}
		var ready, group sync.WaitGroup
		ready.Add(subscribers)
		for range subscribers {
			group.Go(func() {
				ctx, done := context.WithCancel(b.Context())
				defer done()
				to := &subscriber{ResponseWriter: httptest.NewRecorder(), synced: ready.Done, left: transitions, done: done}
				handler.ServeHTTP(to, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/watch", nil))
				if to.left != 0 {
					b.Errorf("%d transitions are missing", to.left)
				}
			})
		}
		ready.Wait()
		began := time.Now()
		for i := range transitions {
			history.Append([]health.Transition{{
				Time: time.Now(), Endpoint: keyOf("web", "10.0.0.1:80"), From: health.Healthy, To: health.Unhealthy, Reason: "2 of 3 checkers say UNHEALTHY",
				Observations: make([]health.Observation, 1+i%3),
			}})
		}
		group.Wait()
		b.ReportMetric(float64(subscribers*transitions)/time.Since(began).Seconds(), "events/s")
		if err := history.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
