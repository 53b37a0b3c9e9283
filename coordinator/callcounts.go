package coordinator

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
)

// callCounts are the metrics of gRPC calls. Those of a call are looked up once, when it
// begins: a stream has many messages.
type callCounts struct {
	started, handled, received, sent *prometheus.CounterVec
	took                             *prometheus.HistogramVec
}

func newCallCounts(to prometheus.Registerer) *callCounts {
	factory, labels := promauto.With(to), []string{"grpc_type", "grpc_service", "grpc_method"}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "hdsd_grpc_server_" + name, Help: help}, append(labels, more...))
	}
	return &callCounts{
		started:  counter("started_total", "gRPC calls that began."),
		handled:  counter("handled_total", "gRPC calls that ended, by status.", "grpc_code"),
		received: counter("msg_received_total", "Messages of gRPC calls that were received."),
		sent:     counter("msg_sent_total", "Messages of gRPC calls that were sent."),
		took: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hdsd_grpc_server_handling_seconds", Help: "How long gRPC calls took.", Buckets: seconds,
		}, labels),
	}
}

// call counts one call.
type call struct {
	counts         *callCounts
	labels         []string
	began          time.Time
	received, sent prometheus.Counter
}

func (c *callCounts) begin(kind, method string) *call {
	service, method, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	labels := []string{kind, service, method}
	c.started.WithLabelValues(labels...).Inc()
	return &call{c, labels, time.Now(), c.received.WithLabelValues(labels...), c.sent.WithLabelValues(labels...)}
}

func (c *call) end(err error) {
	c.counts.handled.WithLabelValues(append(c.labels, statusOf(err).Code().String())...).Inc()
	c.counts.took.WithLabelValues(c.labels...).Observe(time.Since(c.began).Seconds())
}

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

func (c *callCounts) stream(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	call := c.begin(kindOf(info), info.FullMethod)
	err := handle(server, &countedCall{s, call})
	call.end(err)
	return err
}

func kindOf(info *grpc.StreamServerInfo) string {
	switch {
	case !info.IsServerStream:
		return "client_stream"
	case !info.IsClientStream:
		return "server_stream"
	default:
		return "bidi_stream"
	}
}

// countedCall is a stream whose messages are counted.
type countedCall struct {
	grpc.ServerStream
	call *call
}

// RecvMsg implements grpc.ServerStream.
func (s *countedCall) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.call.received.Inc()
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s *countedCall) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.call.sent.Inc()
	}
	return err
}
