package coordinator

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"hdsd/config"
	"hdsd/coordinator/attention"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/rest"
	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
)

// bounds makes the pools that callers share, and counts refusals.
type bounds struct {
	registerer prometheus.Registerer
	log        zerolog.Logger
	refused    *prometheus.CounterVec
	bytes      *inflight.Budget // for gRPC messages
	answers    *limit.Room      // for responses of the relay's control plane; as large as bytes
	bodies     *rest.Budget     // for REST requests; shares the room of bytes

	requests refusals
	streams  *streamBounds
	names    *limit.Pool // names of unknown resources
	waitPace limit.Pace  // of the lines of logWaiting
}

func newBounds(registerer prometheus.Registerer, log zerolog.Logger, l *configv1.Limits, memory uint64) *bounds {
	b := &bounds{registerer: registerer, log: log, refused: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_limit_refusals_total", Help: "What was refused, or ended to make room, because of a limit, by the field of the limit.",
	}, []string{"limit"})}
	b.requests.log, b.waitPace.Interval = log, time.Minute
	b.answers = limit.NewRoom(config.BytesInFlight(l, memory))
	b.bytes = b.inFlight(l, memory)
	b.bodies = rest.NewBudget(b.bytes.Room)
	b.bodies.Refused = b.requests.reportREST
	b.streams = b.streamBounds(l)
	b.bytes.Connections = b.pool(limit.Limit{
		Unit: "connections", PerCallerField: "limits.max_connections_per_caller", PerCaller: int64(l.GetMaxConnectionsPerCaller()),
	})
	b.names = b.pool(limit.Limit{
		Unit: "names of unknown resources", Field: "limits.max_subscriptions", Total: int64(l.GetMaxSubscriptions()),
		PerCallerField: "limits.max_subscriptions_per_caller", PerCaller: int64(l.GetMaxSubscriptionsPerCaller()),
	})
	return b
}

// pool makes a pool. The series of its fields exist from the start.
func (b *bounds) pool(l limit.Limit) *limit.Pool {
	for _, field := range []string{l.Field, l.PerCallerField} {
		if field != "" {
			b.refused.WithLabelValues(field)
		}
	}
	var lines limit.Pace
	l.Refused = func(err *limit.Error) {
		b.refused.WithLabelValues(err.Field()).Inc()
		lines.Warn(time.Now(), &b.log, "limit_reached").Str("limit", err.Field()).Str("caller", limit.Name(err.Caller)).Msg(err.Error())
	}
	return limit.NewPool(l)
}

// longWait is the time after which a message that waits for room needs attention.
const longWait = time.Second

// waiting returns the callers whose message, and whose response of the relay's control plane, wait longest for
// room. The reason is empty for a wait shorter than longWait.
func (b *bounds) waiting(now time.Time) (messages, answers attention.Named) {
	return longestWait(b.bytes.Room, now, "%d messages wait for room among the bytes in flight, and their senders with them"),
		longestWait(b.answers, now, "%d responses of the relay's control plane wait for room among the bytes in flight, and data planes for them")
}

// longestWait returns the caller that waits longest for room. The format takes the number of waiting callers.
func longestWait(room *limit.Room, now time.Time, format string) attention.Named {
	w := room.Waiting()
	if w.Count == 0 || now.Sub(w.Since) < longWait {
		return attention.Named{}
	}
	return attention.Named{Name: limit.Name(w.Caller), Since: w.Since, Reason: fmt.Sprintf(format, w.Count)}
}

// logWaiting logs waiting messages and responses, at most once a minute.
func (b *bounds) logWaiting(now time.Time) {
	messages, answers := b.waiting(now)
	if messages.Reason+answers.Reason == "" {
		return
	}
	if _, ok := b.waitPace.Next(now); !ok {
		return
	}
	b.logWait(messages, b.bytes.Room)
	b.logWait(answers, b.answers)
}

// logWait logs the longest wait for a room, if it has a reason.
func (b *bounds) logWait(w attention.Named, room *limit.Room) {
	if w.Reason != "" {
		b.log.Warn().Str("event", "messages_wait").Str("limit", bytesInFlight).Str("caller", w.Name).Time("since", w.Since).
			Int("count", room.Waiting().Count).Msg(w.Reason + ": raise limits.max_bytes_in_flight if that lasts")
	}
}

// bytesInFlight is the name of the setting.
const bytesInFlight = "limits.max_bytes_in_flight"

// bytesPerEndpoint is the usual size of an endpoint in a report.
const bytesPerEndpoint = 100

// inFlight makes the budget of bytes in flight. The memory is 0 if unknown.
func (b *bounds) inFlight(l *configv1.Limits, memory uint64) *inflight.Budget {
	bytes := config.BytesInFlight(l, memory)
	budget := inflight.NewBudget(bytes)
	b.log.Info().Str("event", "bytes_in_flight").Int64("bytes", bytes).Int64("endpoints", budget.Room.Common()/bytesPerEndpoint).
		Msg("limits the bytes of messages in flight; further messages wait")
	b.refused.WithLabelValues(bytesInFlight)
	gauge := func(name, help string, value func() float64) {
		promauto.With(b.registerer).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	gauge("hdsd_bytes_in_flight", "Bytes of gRPC messages and REST requests that are on their way or not yet processed.",
		func() float64 { return float64(budget.Room.Taken()) })
	gauge("hdsd_relay_bytes_in_flight", "Bytes of responses of the relay's control plane that are on their way to data planes.",
		func() float64 { return float64(b.answers.Taken()) })
	gauge("hdsd_messages_waiting", "Messages, REST requests and responses of the relay's control plane that wait for room among the bytes in flight.",
		func() float64 { return float64(budget.Room.Waiting().Count + b.answers.Waiting().Count) })
	gauge("hdsd_messages_longest_wait_seconds", "How long the one of them has waited that waits longest.", func() (seconds float64) {
		for _, room := range []*limit.Room{budget.Room, b.answers} {
			if waiting := room.Waiting(); waiting.Count > 0 {
				seconds = max(seconds, time.Since(waiting.Since).Seconds())
			}
		}
		return seconds
	})
	budget.Largest, budget.LargestField = int(l.GetMaxMessageBytes()), "limits.max_message_bytes"
	budget.Refused = func(caller string, err error) { b.requests.report(caller, "", err) }
	var lines limit.Pace
	budget.Late = func(caller string, bytes int) {
		b.refused.WithLabelValues(bytesInFlight).Inc()
		lines.Warn(time.Now(), &b.log, "message_late").Str("caller", limit.Name(caller)).Int("bytes", bytes).
			Msg("a connection is closed: its client did not send the rest of a message, the end of its only request, or the acknowledgement of HTTP/2's settings in time")
	}
	return budget
}
