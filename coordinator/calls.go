package coordinator

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/debug"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// seconds are the buckets of durations, from what a machine takes for one
// thing to what people notice.
var seconds = []float64{0.0001, 0.001, 0.01, 0.1, 1, 10}

// calls counts what is asked of both servers. A call that panics fails alone:
// what its handler holds is given back by defer. The streams' own goroutines
// and the core are not covered: they change what all share, and after a panic
// a new process with the last known health is better than a wrong one.
type calls struct {
	log    zerolog.Logger
	grpc   *grpcprom.ServerMetrics
	http   *prometheus.CounterVec
	panics prometheus.Counter
	closed prometheus.Counter
}

func newCalls(to prometheus.Registerer, log zerolog.Logger) *calls {
	factory := promauto.With(to)
	c := &calls{
		log: log,
		grpc: grpcprom.NewServerMetrics(
			grpcprom.WithServerCounterOptions(grpcprom.WithNamespace("hdsd")),
			grpcprom.WithServerHandlingTimeHistogram(grpcprom.WithHistogramNamespace("hdsd"), grpcprom.WithHistogramBuckets(seconds)),
		),
		http: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "hdsd_http_requests_total", Help: "HTTP requests answered, by what was asked and the status.",
		}, []string{"handler", "code"}),
		panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_panics_total", Help: "gRPC calls that failed because of a bug in hdsd.",
		}),
		closed: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_connections_refused_total", Help: "Connections closed at once, as there were limits.max_connections.",
		}),
	}
	to.MustRegister(c.grpc)
	return c
}

// options are what a grpc.Server is to be made with.
func (c *calls) options() []grpc.ServerOption {
	contained := recovery.WithRecoveryHandler(c.panicked)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(c.grpc.UnaryServerInterceptor(), recovery.UnaryServerInterceptor(contained)),
		grpc.ChainStreamInterceptor(c.grpc.StreamServerInterceptor(), recovery.StreamServerInterceptor(contained)),
	}
}

func (c *calls) panicked(cause any) error {
	c.panics.Inc()
	c.log.Error().Str("event", "panic").Str("cause", fmt.Sprint(cause)).Bytes("stack", debug.Stack()).
		Msg("a call failed because of a bug in hdsd")
	return status.Error(codes.Internal, "a bug in hdsd; its log says more")
}

// counted counts the requests of a handler.
func (c *calls) counted(name string, next http.Handler) http.Handler {
	return promhttp.InstrumentHandlerCounter(c.http.MustCurryWith(prometheus.Labels{"handler": name}), next)
}

// complaints has what net/http complains of in the log.
type complaints struct{ log zerolog.Logger }

// Write implements io.Writer for one line.
func (c complaints) Write(line []byte) (int, error) {
	c.log.Warn().Str("event", "http_trouble").Msg(string(bytes.TrimSpace(line)))
	return len(line), nil
}
