package coordinator

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/api"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/share"
)

// bounds makes the pools that callers share, and shows whom they refuse.
type bounds struct {
	c       *Coordinator
	refused *prometheus.CounterVec
}

func (c *Coordinator) newBounds() *bounds {
	return &bounds{c, promauto.With(c.registry).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_limit_refusals_total", Help: "What was refused, or ended to make room, because of a limit, by the field of the limit.",
	}, []string{"limit"})}
}

// pool makes a pool. Its fields are counted from the start.
func (b *bounds) pool(l share.Limit) *share.Pool {
	for _, field := range []string{l.Field, l.EachField} {
		if field != "" {
			b.refused.WithLabelValues(field)
		}
	}
	l.Refused = func(err *share.Error) {
		b.refused.WithLabelValues(err.Field()).Inc()
		b.c.log.Warn().Str("event", "limit_reached").Str("limit", err.Field()).Str("caller", share.Name(err.Caller)).Msg(err.Error())
	}
	return share.NewPool(l)
}

// queries bounds the queries of the API.
func (b *bounds) queries(l *configv1.Limits) api.Limits {
	return api.Limits{
		Queries: b.pool(share.Limit{
			What: "queries", Field: "limits.max_queries", Total: int64(l.GetMaxQueries()),
			EachField: "limits.max_queries_per_caller", Each: int64(l.GetMaxQueriesPerCaller()),
		}),
		Rows: b.pool(share.Limit{What: "rows of answers that are being sent", Field: "limits.max_query_rows", Total: int64(l.GetMaxQueryRows())}),
	}
}

// bounded bounds the queries of a service, and shows how many there are.
func (c *Coordinator) bounded(s *api.Service) *api.Service {
	limits := c.newBounds().queries(c.started.GetLimits())
	s.Limit(limits)
	factory := promauto.With(c.registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_queries", Help: "Queries over gRPC and HTTP that are worked at, wait, or are being sent.",
	}, func() float64 { return float64(limits.Queries.Usage().Taken) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_queries_waiting", Help: "Queries that wait for their turn.",
	}, func() float64 { return float64(s.QueriesWaiting()) })
	return s
}
