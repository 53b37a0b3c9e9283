package coordinator

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
)

// callCounts holds the metrics of gRPC calls. A call looks its counters up once, at its beginning, since a
// stream has many messages.
type callCounts struct {
	started, handled, received, sent *prometheus.CounterVec
	duration                         *prometheus.HistogramVec
}

func newCallCounts(registerer prometheus.Registerer) *callCounts {
	factory, labels := promauto.With(registerer), []string{"grpc_type", "grpc_service", "grpc_method"}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "hdsd_grpc_server_" + name, Help: help}, append(labels, more...))
	}
	return &callCounts{
		started:  counter("started_total", "gRPC calls that began."),
		handled:  counter("handled_total", "gRPC calls that ended, by status.", "grpc_code"),
		received: counter("msg_received_total", "Messages of gRPC calls that were received."),
		sent:     counter("msg_sent_total", "Messages of gRPC calls that were sent."),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hdsd_grpc_server_handling_seconds", Help: "How long gRPC calls took.", Buckets: seconds,
		}, labels),
	}
}

// call counts one call.
type call struct {
	counts         *callCounts
	labels         []string
	start          time.Time
	received, sent prometheus.Counter
}

// begin counts the beginning of a call.
func (c *callCounts) begin(kind, method string) *call {
	service, method, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	labels := []string{kind, service, method}
	c.started.WithLabelValues(labels...).Inc()
	return &call{c, labels, time.Now(), c.received.WithLabelValues(labels...), c.sent.WithLabelValues(labels...)}
}

// end counts the end of a call.
func (c *call) end(err error) {
	c.counts.handled.WithLabelValues(append(c.labels, statusOf(err).Code().String())...).Inc()
	c.counts.duration.WithLabelValues(c.labels...).Observe(time.Since(c.start).Seconds())
}

// unary is the interceptor for unary calls.
func (c *callCounts) unary(ctx context.Context, m any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	call := c.begin("unary", info.FullMethod)
	call.received.Inc()
	answer, err := handle(ctx, m)
	if err == nil {
		call.sent.Inc()
	}
	call.end(err)
	return answer, err
}

// stream is the interceptor for streams.
func (c *callCounts) stream(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	call := c.begin(streamType(info), info.FullMethod)
	err := handle(server, &countedStream{s, call})
	call.end(err)
	return err
}

// streamType returns the kind of a stream as a label.
func streamType(info *grpc.StreamServerInfo) string {
	switch {
	case !info.IsServerStream:
		return "client_stream"
	case !info.IsClientStream:
		return "server_stream"
	default:
		return "bidi_stream"
	}
}

// countedStream counts the messages of a stream.
type countedStream struct {
	grpc.ServerStream
	call *call
}

// RecvMsg implements grpc.ServerStream.
func (s *countedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.call.received.Inc()
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s *countedStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.call.sent.Inc()
	}
	return err
}
