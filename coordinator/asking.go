package coordinator

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/api"
	"hdsd/peer/limit"
)

// bounded sets the limits of a query service, and registers its metrics.
func (c *Coordinator) bounded(s *api.Service) *api.Service {
	b, l, factory := c.servers.bounds, c.started.GetLimits(), promauto.With(c.registry)
	deaf := factory.NewCounter(prometheus.CounterOpts{
		Name: "hdsd_watches_deaf_total", Help: "Watches that were ended because the client did not read.",
	})
	limits := api.Limits{
		Watches: b.pool(limit.Limit{
			Unit: "watches", Field: "limits.max_watchers", Total: int64(l.GetMaxWatchers()),
			PerCallerField: "limits.max_watchers_per_caller", PerCaller: int64(l.GetMaxWatchersPerCaller()),
		}),
		Deaf: func(caller string) {
			deaf.Inc()
			c.log.Warn().Str("event", "watch_deaf").Str("caller", limit.Name(caller)).Msg("a watch was ended: its client does not read")
		},
		Queries: b.pool(limit.Limit{
			Unit: "queries", Field: "limits.max_queries", Total: int64(l.GetMaxQueries()),
			PerCallerField: "limits.max_queries_per_caller", PerCaller: int64(l.GetMaxQueriesPerCaller()),
		}),
		Rows: b.pool(limit.Limit{Unit: "rows of answers that are being sent", Field: "limits.max_query_rows", Total: int64(l.GetMaxQueryRows())}),
	}
	s.Limit(limits)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_queries", Help: "Queries over gRPC and HTTP that are worked at, wait, or are being sent.",
	}, func() float64 { return float64(limits.Queries.Usage().Taken) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_queries_waiting", Help: "Queries that wait for their turn.",
	}, func() float64 { return float64(s.QueriesWaiting()) })
	return s
}

// watchBuffer is the size of the send buffer of a watch in the kernel, in bytes. It has room for all bytes
// that hdsd writes at once before the client reads, so that the writer does not wait.
const watchBuffer = 128 << 10

// shrinkBuffers reduces the send buffers of watches. With the default of the kernel, hdsd would notice a
// client that does not read only after megabytes.
func shrinkBuffers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*limit.Conn); ok && r.URL.Path == api.WatchPath {
			if tcp, ok := c.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
				_ = tcp.SetWriteBuffer(watchBuffer) // works without, only later
			}
		}
		next.ServeHTTP(w, r)
	})
}
