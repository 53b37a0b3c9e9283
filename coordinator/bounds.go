package coordinator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/inflight"
	"hdsd/internal/pace"
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

	requests refusals
	streams  *streamBounds
	names    *share.Pool // of resources that hdsd does not know
}

func newBounds(to prometheus.Registerer, log zerolog.Logger, l *configv1.Limits) *bounds {
	b := &bounds{to: to, log: log, refused: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_limit_refusals_total", Help: "What was refused, or ended to make room, because of a limit, by the field of the limit.",
	}, []string{"limit"})}
	b.requests.log = log
	b.bytes = b.inFlight(l)
	b.bodies = rest.NewBudget(b.bytes.Pool)
	b.bodies.Refused = b.requests.byREST
	b.streams = b.streamBounds(l)
	b.bytes.Connections = b.pool(share.Limit{
		What: "connections", EachField: "limits.max_connections_per_caller", Each: int64(l.GetMaxConnectionsPerCaller()),
	})
	b.names = b.pool(share.Limit{
		What: "names of unknown resources", Field: "limits.max_subscriptions", Total: int64(l.GetMaxSubscriptions()),
		EachField: "limits.max_subscriptions_per_caller", Each: int64(l.GetMaxSubscriptionsPerCaller()),
	})
	return b
}

// pool makes a pool. Its fields are counted from the start.
func (b *bounds) pool(l share.Limit) *share.Pool {
	for _, field := range []string{l.Field, l.EachField} {
		if field != "" {
			b.refused.WithLabelValues(field)
		}
	}
	var lines pace.Pace
	l.Refused = func(err *share.Error) {
		b.refused.WithLabelValues(err.Field()).Inc()
		if more, ok := lines.Next(time.Now()); ok {
			b.log.Warn().Str("event", "limit_reached").Str("limit", err.Field()).Str("caller", share.Name(err.Caller)).Uint64("more", more).Msg(err.Error())
		}
	}
	return share.NewPool(l)
}

// inFlight bounds the bytes that are in flight.
func (b *bounds) inFlight(l *configv1.Limits) *inflight.Budget {
	pool := b.pool(share.Limit{What: "bytes in flight", Field: "limits.max_bytes_in_flight", Total: config.BytesInFlight(l)})
	promauto.With(b.to).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_bytes_in_flight", Help: "Bytes of gRPC messages and REST requests that are on their way or not yet processed.",
	}, func() float64 { return float64(pool.Usage().Taken) })
	var lines pace.Pace
	return &inflight.Budget{
		Pool: pool, Largest: int(l.GetMaxMessageBytes()), LargestField: "limits.max_message_bytes",
		Refused: func(caller string, err error) { b.requests.tell(caller, "", err) },
		Late: func(caller string, bytes int) {
			b.refused.WithLabelValues(pool.Limit().Field).Inc()
			if more, ok := lines.Next(time.Now()); ok {
				b.log.Warn().Str("event", "message_late").Str("caller", share.Name(caller)).Int("bytes", bytes).Uint64("more", more).
					Msg("a connection is closed: its client began a message and did not send the rest in time")
			}
		},
	}
}
