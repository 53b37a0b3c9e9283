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

// bounds makes the pools that callers share, and shows whom they refuse.
type bounds struct {
	to      prometheus.Registerer
	log     zerolog.Logger
	refused *prometheus.CounterVec
	bytes   *inflight.Budget // of gRPC messages
	answers *limit.Room      // of responses of the relay's control plane: as many bytes as of messages
	bodies  *rest.Budget     // of REST requests: the same bytes

	requests refusals
	streams  *streamBounds
	names    *limit.Pool // of resources that hdsd does not know
	told     limit.Pace  // of tellWaiting
}

func newBounds(to prometheus.Registerer, log zerolog.Logger, l *configv1.Limits, memory uint64) *bounds {
	b := &bounds{to: to, log: log, refused: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_limit_refusals_total", Help: "What was refused, or ended to make room, because of a limit, by the field of the limit.",
	}, []string{"limit"})}
	b.requests.log, b.told.Interval = log, time.Minute
	b.answers = limit.NewRoom(config.BytesInFlight(l, memory))
	b.bytes = b.inFlight(l, memory)
	b.bodies = rest.NewBudget(b.bytes.Room)
	b.bodies.Refused = b.requests.byREST
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

// pool makes a pool. Its fields are counted from the start.
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

// longWait is how long a message may wait for room before that needs attention.
const longWait = time.Second

// waiting returns the caller whose message waits longest for room, and the caller whose response of
// the relay's control plane does. A caller that waits for less than longWait has no reason.
func (b *bounds) waiting(now time.Time) (messages, answers attention.Named) {
	return longestWait(b.bytes.Room, now, "%d messages wait for room among the bytes in flight, and their senders with them"),
		longestWait(b.answers, now, "%d responses of the relay's control plane wait for room among the bytes in flight, and data planes for them")
}

// longestWait returns the caller that waits longest in a room. The reason takes the number of waiters.
func longestWait(room *limit.Room, now time.Time, format string) attention.Named {
	w := room.Waiting()
	if w.Count == 0 || now.Sub(w.Since) < longWait {
		return attention.Named{}
	}
	return attention.Named{Name: limit.Name(w.Caller), Since: w.Since, Reason: fmt.Sprintf(format, w.Count)}
}

// tellWaiting logs that messages or responses wait, once a minute.
func (b *bounds) tellWaiting(now time.Time) {
	messages, answers := b.waiting(now)
	if messages.Reason+answers.Reason == "" {
		return
	}
	if _, ok := b.told.Next(now); !ok {
		return
	}
	b.tell(messages, b.bytes.Room)
	b.tell(answers, b.answers)
}

func (b *bounds) tell(w attention.Named, room *limit.Room) {
	if w.Reason != "" {
		b.log.Warn().Str("event", "messages_wait").Str("limit", bytesInFlight).Str("caller", w.Name).Time("since", w.Since).
			Int("count", room.Waiting().Count).Msg(w.Reason + ": raise limits.max_bytes_in_flight if that lasts")
	}
}

// bytesInFlight is the field of the bytes that are in flight.
const bytesInFlight = "limits.max_bytes_in_flight"

// bytesPerReported is what a report has for each endpoint, as a rule.
const bytesPerReported = 100

// inFlight bounds the bytes that are in flight. The memory that there is may be unknown, 0.
func (b *bounds) inFlight(l *configv1.Limits, memory uint64) *inflight.Budget {
	bytes := config.BytesInFlight(l, memory)
	budget := inflight.NewBudget(bytes)
	b.log.Info().Str("event", "bytes_in_flight").Int64("bytes", bytes).Int64("endpoints", budget.Room.Common()/bytesPerReported).
		Msg("so many bytes may be in flight, which is room for reports of so many endpoints at a time; more wait")
	b.refused.WithLabelValues(bytesInFlight)
	gauge := func(name, help string, value func() float64) {
		promauto.With(b.to).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
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
	budget.Refused = func(caller string, err error) { b.requests.tell(caller, "", err) }
	var lines limit.Pace
	budget.Late = func(caller string, bytes int) {
		b.refused.WithLabelValues(bytesInFlight).Inc()
		lines.Warn(time.Now(), &b.log, "message_late").Str("caller", limit.Name(caller)).Int("bytes", bytes).
			Msg("a connection is closed: its client did not send the rest of a message, the end of its only request, or the acknowledgement of HTTP/2's settings in time")
	}
	return budget
}
