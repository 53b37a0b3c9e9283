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
	answers *share.Room      // of responses of the relay's control plane: as many bytes as of messages
	bodies  *rest.Budget     // of REST requests: the same bytes

	requests refusals
	streams  *streamBounds
	names    *share.Pool // of resources that hdsd does not know
	told     time.Time   // when tellWaiting last did; of the goroutine that looks
}

func newBounds(to prometheus.Registerer, log zerolog.Logger, l *configv1.Limits, memory uint64) *bounds {
	b := &bounds{to: to, log: log, refused: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_limit_refusals_total", Help: "What was refused, or ended to make room, because of a limit, by the field of the limit.",
	}, []string{"limit"})}
	b.requests.log = log
	b.answers = share.NewRoom(config.BytesInFlight(l, memory))
	b.bytes = b.inFlight(l, memory)
	b.bodies = rest.NewBudget(b.bytes.Room)
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

// longWait is how long a message may wait for room before that needs attention.
const longWait = time.Second

// waiting returns the caller whose message waits longest for room, and the caller whose response of
// the relay's control plane does. A caller that waits for less than longWait has no reason.
func (b *bounds) waiting(now time.Time) (messages, answers attention.Named) {
	return longestWait(b.bytes.Room, now, "%d messages wait for room among the bytes in flight, and their senders with them"),
		longestWait(b.answers, now, "%d responses of the relay's control plane wait for room among the bytes in flight, and data planes for them")
}

// longestWait returns the caller that waits longest in a room. The reason takes the number of waiters.
func longestWait(room *share.Room, now time.Time, format string) attention.Named {
	w := room.Waiting()
	if w.Count == 0 || now.Sub(w.Since) < longWait {
		return attention.Named{}
	}
	return attention.Named{Name: share.Name(w.Caller), Since: w.Since, Reason: fmt.Sprintf(format, w.Count)}
}

// tellWaiting logs that messages or responses wait, once a minute.
func (b *bounds) tellWaiting(now time.Time) {
	messages, answers := b.waiting(now)
	if messages.Reason+answers.Reason == "" || now.Sub(b.told) < time.Minute {
		return
	}
	b.told = now
	b.tell(messages, b.bytes.Room)
	b.tell(answers, b.answers)
}

func (b *bounds) tell(w attention.Named, room *share.Room) {
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
		for _, room := range []*share.Room{budget.Room, b.answers} {
			if waiting := room.Waiting(); waiting.Count > 0 {
				seconds = max(seconds, time.Since(waiting.Since).Seconds())
			}
		}
		return seconds
	})
	budget.Largest, budget.LargestField = int(l.GetMaxMessageBytes()), "limits.max_message_bytes"
	budget.Refused = func(caller string, err error) { b.requests.tell(caller, "", err) }
	var lines pace.Pace
	budget.Late = func(caller string, bytes int) {
		b.refused.WithLabelValues(bytesInFlight).Inc()
		if more, ok := lines.Next(time.Now()); ok {
			b.log.Warn().Str("event", "message_late").Str("caller", share.Name(caller)).Int("bytes", bytes).Uint64("more", more).
				Msg("a connection is closed: its client began a message and did not send the rest in time")
		}
	}
	return budget
}
