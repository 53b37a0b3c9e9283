package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/reason"
)

// seconds are the histogram buckets of durations, from single operations to times that people notice.
var seconds = []float64{0.0001, 0.001, 0.01, 0.1, 1, 10}

// calls counts the calls of both servers. A call that panics fails alone, and its deferred functions release
// its resources. A panic in the goroutine of a stream or in the core ends the process: they change shared
// state, and a new process with the last known health is better than a wrong one.
type calls struct {
	log              zerolog.Logger
	counts           *callCounts
	http             *prometheus.CounterVec
	panics           prometheus.Counter
	closed           prometheus.Counter
	endedConnections *prometheus.CounterVec // by listener and reason
	insecure         *prometheus.GaugeVec   // by listener
	expiry           *expiry
	unserved         *unserved
}

func newCalls(to prometheus.Registerer, log zerolog.Logger) *calls {
	factory := promauto.With(to)
	c := &calls{
		log:      log,
		counts:   newCallCounts(to),
		unserved: newUnserved(to, log),
		http: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "hdsd_http_requests_total", Help: "Answered HTTP requests, by handler and status.",
		}, []string{"handler", "code"}),
		panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_panics_total", Help: "gRPC calls that failed because of a bug in hdsd.",
		}),
		closed: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_connections_refused_total", Help: "Connections closed at once because limits.max_connections were open.",
		}),
	}
	c.endedConnections = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_connections_ended_total", Help: "Connections that hdsd ended, by listener and reason: their age, or their client's certificate.",
	}, []string{"listener", "reason"})
	c.insecure = factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hdsd_listener_insecure", Help: "1 while other machines reach a listener without TLS, else 0.",
	}, []string{"listener"})
	c.expiry = &expiry{}
	to.MustRegister(c.expiry)
	return c
}

// options returns the options of the gRPC server.
func (c *calls) options() []grpc.ServerOption {
	handler := recovery.WithRecoveryHandler(c.recovered)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(addReason, c.counts.unary, recovery.UnaryServerInterceptor(handler)),
		grpc.ChainStreamInterceptor(addStreamReason, c.counts.stream, recovery.StreamServerInterceptor(handler)),
	}
}

// addReason is the interceptor that adds a reason to each error of a unary call.
func addReason(ctx context.Context, m any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, m)
	return answer, withReason(err)
}

// addStreamReason is the interceptor that adds a reason to each error of a stream.
func addStreamReason(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return withReason(handle(server, s))
}

// withReason returns an error with a reason.
func withReason(err error) error {
	if err == nil {
		return nil
	}
	return reason.Complete(statusOf(err)).Err()
}

// statusOf returns the status that grpc sends for an error; nil without an error.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

// recovered counts and logs a panic, and returns the error of the call.
func (c *calls) recovered(cause any) error {
	c.panics.Inc()
	c.log.Error().Str("event", "panic").Str("cause", fmt.Sprint(cause)).Bytes("stack", debug.Stack()).
		Msg("a gRPC call failed because of a bug in hdsd")
	return status.Error(codes.Internal, "a bug in hdsd; its log says more")
}

// counted counts the requests of a handler.
func (c *calls) counted(name string, next http.Handler) http.Handler {
	return promhttp.InstrumentHandlerCounter(c.http.MustCurryWith(prometheus.Labels{"handler": name}), next)
}

// errorLog logs the errors of net/http.
type errorLog struct{ log zerolog.Logger }

// Write implements io.Writer. Each call has one line.
func (l errorLog) Write(line []byte) (int, error) {
	l.log.Warn().Str("event", "http_trouble").Msg(string(bytes.TrimSpace(line)))
	return len(line), nil
}
