package coordinator

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"hdsd/api"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer/limit"
)

// heldBackend is one that answers when the test says so.
type heldBackend struct {
	api.Backend
	release chan struct{}
}

func (h heldBackend) Clusters(context.Context, api.ClusterQuery) ([]api.Cluster, bool, error) {
	<-h.release
	return nil, false, nil
}

// TestQueryLimits covers the configured limits, their metrics and the log.
func TestQueryLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &Coordinator{log: zerolog.New(&log), registry: prometheus.NewRegistry(), started: &configv1.Config{Limits: &configv1.Limits{
			MaxQueries: 30, MaxQueriesPerCaller: 20, MaxQueryRows: 10_000,
		}}}
		c.servers = &servers{bounds: newBounds(c.registry, c.log, c.started.GetLimits(), 0)}
		backend := heldBackend{release: make(chan struct{})}
		handler, err := c.bounded(api.NewService(backend)).Handler()
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		ask := func(from string, want int) {
			all.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/clusters?pageSize=10000", nil)
				r.RemoteAddr = from
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != want {
					t.Errorf("%s got %d %s", from, w.Code, w.Body)
				}
			})
			synctest.Wait()
		}
		for range 20 {
			ask("10.0.0.1:1", http.StatusOK)
		}
		ask("10.0.0.1:1", http.StatusTooManyRequests)
		for name, least := range map[string]float64{"hdsd_queries": 20, "hdsd_queries_waiting": 1, "hdsd_limit_refusals_total": 1} {
			if got := sumOf(t, c.registry, name); got < least || got > 20 {
				t.Errorf("%s is %v", name, got)
			}
		}
		if got := sumOf(t, c.registry, "hdsd_watches_deaf_total"); got != 0 { // api.TestDeafWatchersAreEnded has some
			t.Errorf("%v watches were deaf", got)
		}
		close(backend.release)
		all.Wait()
		if got := sumOf(t, c.registry, "hdsd_queries"); got != 0 {
			t.Errorf("%v queries are left", got)
		}
		if got := log.String(); strings.Count(got, `"event":"limit_reached","limit":"limits.max_queries_per_caller","caller":"caller \"connection 10.0.0.1:1\""`) != 1 {
			t.Errorf("the log says %s", got)
		}
		if problems, err := testutil.GatherAndLint(c.registry); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
	})
}

// sumOf adds up a metric's values.
func sumOf(t *testing.T, from prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}

// TestLongestWaitIsShown covers the log once a minute, the metrics and the attention of callers that wait for
// room. It covers responses of the relay's control plane too.
func TestLongestWaitIsShown(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			registry := prometheus.NewRegistry()
			b := newBounds(registry, zerolog.New(&log), &configv1.Limits{MaxMessageBytes: 1 << 20, MaxBytesInFlight: 2 << 20}, 0)
			room := b.bytes.Room
			if relayed {
				room = b.answers
			}
			check := func(what string, waiting bool, lines int) {
				t.Helper()
				b.logWaiting(time.Now())
				w, other := b.waiting(time.Now())
				if relayed {
					w, other = other, w
				}
				if other.Reason != "" || (w.Reason != "") != waiting || waiting && w.Name != `caller "checker"` {
					t.Errorf("%s: %+v", what, w)
				}
				if got := strings.Count(log.String(), `"event":"messages_wait","limit":"limits.max_bytes_in_flight","caller":"caller \"checker\""`); got != lines {
					t.Errorf("%s: %d lines, want %d: %s", what, got, lines, &log)
				}
			}
			first, _ := room.Ask("other", 1<<20, nil)
			second, free := room.Ask("checker", 1<<20, func(*limit.Turn) {})
			if free {
				t.Fatal("there is room for both callers")
			}
			check("at once", false, 0)
			time.Sleep(longWait)
			check("after a while", true, 1)
			time.Sleep(time.Second)
			check("then", true, 1)
			if got, longest := sumOf(t, registry, "hdsd_messages_waiting"), sumOf(t, registry, "hdsd_messages_longest_wait_seconds"); got != 1 || longest != 2 {
				t.Errorf("%v wait for %v s by the metrics", got, longest)
			}
			if got := sumOf(t, registry, "hdsd_relay_bytes_in_flight"); (got > 0) != relayed {
				t.Errorf("responses have room for %v bytes by the metric", got)
			}
			time.Sleep(time.Minute)
			check("a minute later", true, 2)
			first.Release()
			check("in the end", false, 2)
			second.Release()
		})
	}
}
