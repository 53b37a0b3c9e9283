package coordinator

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"hdsd/api"
	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/inflight"
	"hdsd/internal/rest"
	"hdsd/internal/share"
)

// bounds makes the pools that callers share, and shows whom they refuse.
type bounds struct {
	to      prometheus.Registerer
	log     zerolog.Logger
	refused *prometheus.CounterVec
	bytes   *inflight.Budget // of gRPC messages
	bodies  *rest.Budget     // of REST requests: the same bytes
}

func newBounds(to prometheus.Registerer, log zerolog.Logger, l *configv1.Limits) *bounds {
	b := &bounds{to: to, log: log, refused: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_limit_refusals_total", Help: "What was refused, or ended to make room, because of a limit, by the field of the limit.",
	}, []string{"limit"})}
	b.bytes = b.inFlight(l)
	b.bodies = rest.NewBudget(b.bytes.Pool)
	return b
}

// refusalPause is the time between two lines of one limit in the log.
const refusalPause = time.Second

// pool makes a pool. Its fields are counted from the start.
func (b *bounds) pool(l share.Limit) *share.Pool {
	for _, field := range []string{l.Field, l.EachField} {
		if field != "" {
			b.refused.WithLabelValues(field)
		}
	}
	var lines pace
	l.Refused = func(err *share.Error) {
		b.refused.WithLabelValues(err.Field()).Inc()
		if more, ok := lines.next(time.Now()); ok {
			b.log.Warn().Str("event", "limit_reached").Str("limit", err.Field()).Str("caller", share.Name(err.Caller)).Uint64("more", more).Msg(err.Error())
		}
	}
	return share.NewPool(l)
}

// pace keeps a flood out of the log.
type pace struct {
	mu   sync.Mutex
	last time.Time
	more uint64
}

// next tells whether to log now, and how much was not logged before.
func (p *pace) next(now time.Time) (more uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) < refusalPause {
		p.more++
		return 0, false
	}
	more, p.more, p.last = p.more, 0, now
	return more, true
}

// inFlight bounds the bytes that are in flight.
func (b *bounds) inFlight(l *configv1.Limits) *inflight.Budget {
	pool := b.pool(share.Limit{What: "bytes in flight", Field: "limits.max_bytes_in_flight", Total: config.BytesInFlight(l)})
	promauto.With(b.to).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_bytes_in_flight", Help: "Bytes of gRPC messages and REST requests that are on their way or not yet processed.",
	}, func() float64 { return float64(pool.Usage().Taken) })
	var lines pace
	return &inflight.Budget{Pool: pool, Late: func(caller string, bytes int) {
		b.refused.WithLabelValues(pool.Limit().Field).Inc()
		if more, ok := lines.next(time.Now()); ok {
			b.log.Warn().Str("event", "message_late").Str("caller", share.Name(caller)).Int("bytes", bytes).Uint64("more", more).
				Msg("a connection is closed: its client began a message and did not send the rest in time")
		}
	}}
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
	limits := c.servers.bounds.queries(c.started.GetLimits())
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
