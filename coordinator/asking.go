package coordinator

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/api"
	"hdsd/peer/limit"
)

// bounded bounds the queries and watches of a service, and shows how many there are.
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

// watchBuffer is how many bytes the system may keep for a watcher that does not read. It has
// room for what is written at once while the client has not read what was written before:
// who writes must not wait for it.
const watchBuffer = 128 << 10

// shallow lets the system keep less for watchers than it likes to, or one that never
// reads would be taken for a good one for megabytes.
func shallow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*limit.Conn); ok && r.URL.Path == api.WatchPath {
			if tcp, ok := c.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
				_ = tcp.SetWriteBuffer(watchBuffer) // it is only an economy
			}
		}
		next.ServeHTTP(w, r)
	})
}
