package eds

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have no label but the type: one of the two served, or one of the others
// that xDS knows.
type metrics struct {
	subscriptions *prometheus.GaugeVec
	responses     *prometheus.CounterVec
	bytes         *prometheus.CounterVec
	acks          *prometheus.CounterVec
	nacks         *prometheus.CounterVec
	fetches       *prometheus.CounterVec
	unchanged     *prometheus.CounterVec
	delay         prometheus.Histogram
	parked        *prometheus.CounterVec
	stuck         prometheus.Counter
	idle          prometheus.Counter
	unencodable   prometheus.Counter
}

func newMetrics() *metrics {
	byType := []string{"type_url"}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "hdsd_xds_" + name, Help: help}
	}
	m := &metrics{
		subscriptions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hdsd_xds_subscriptions", Help: "Subscriptions, one for each stream and type.",
		}, byType),
		responses: prometheus.NewCounterVec(counter("responses_total", "Responses sent on streams."), byType),
		bytes:     prometheus.NewCounterVec(counter("response_bytes_total", "Bytes of responses sent, on streams and to fetches."), byType),
		acks:      prometheus.NewCounterVec(counter("acks_total", "Responses that clients acknowledged."), byType),
		nacks:     prometheus.NewCounterVec(counter("nacks_total", "Responses that clients refused."), byType),
		fetches:   prometheus.NewCounterVec(counter("fetches_total", "Fetches, by gRPC and REST."), byType),
		unchanged: prometheus.NewCounterVec(counter("fetches_unchanged_total", "Fetches by REST of what the client had already."), byType),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hdsd_xds_push_delay_seconds", Help: "From a change being published to it being handed to a client's transport.",
			Buckets: []float64{0.0001, 0.001, 0.01, 0.1, 1, 10},
		}),
		parked:      prometheus.NewCounterVec(counter("parked_requests_total", "Requests for types that are not served."), byType),
		idle:        prometheus.NewCounter(counter("idle_streams_total", "Streams ended because no request came.")),
		stuck:       prometheus.NewCounter(counter("stuck_streams_total", "Streams ended because the client did not read.")),
		unencodable: prometheus.NewCounter(counter("unencodable_resources_total", "Resources that could not be encoded.")),
	}
	m.parked.WithLabelValues(otherType)
	for typeURL := range elsewhere {
		m.parked.WithLabelValues(typeURL)
	}
	return m
}

// typeCounts are the metrics of one type, looked up once: each response needs several.
type typeCounts struct {
	subscriptions                                     prometheus.Gauge
	responses, bytes, acks, nacks, fetches, unchanged prometheus.Counter
}

// forType returns the metrics of a type, which are shown from then on.
func (m *metrics) forType(typeURL string) *typeCounts {
	counter := func(vec *prometheus.CounterVec) prometheus.Counter { return vec.WithLabelValues(typeURL) }
	return &typeCounts{
		subscriptions: m.subscriptions.WithLabelValues(typeURL),
		responses:     counter(m.responses), bytes: counter(m.bytes), acks: counter(m.acks), nacks: counter(m.nacks),
		fetches: counter(m.fetches), unchanged: counter(m.unchanged),
	}
}

// register adds the metrics to a registry, with gauges of the server's state.
func (m *metrics) register(registerer prometheus.Registerer, s *Server) {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hdsd_xds_" + name, Help: help}, value)
	}
	registerer.MustRegister(m.subscriptions, m.responses, m.bytes, m.acks, m.nacks, m.fetches, m.unchanged, m.delay, m.parked, m.stuck, m.idle, m.unencodable,
		gauge("streams", "Streams of data planes.", func() float64 { return float64(s.streams.count()) }),
		gauge("subscriptions_in_groups", "Subscriptions to assignments that share what they are sent with others.",
			func() float64 { return float64(s.published.assignments.sharing()) }),
		gauge("pollers", "Data planes that polled, by gRPC or REST, within five minutes.", func() float64 { return float64(s.polls.Count(time.Now())) }),
		gauge("assignments_not_asked", "Assignments of checked clusters that data planes took 30 s ago or longer, and have not asked for.",
			func() float64 { return float64(s.unasked.sum()) }),
		gauge("first_syncs_waiting", "Subscriptions that wait to be sent their first resources.", func() float64 { return float64(s.admission.waitingCount()) }))
	for _, t := range s.published.tables() {
		registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hdsd_xds_resources", Help: "Resources published.",
			ConstLabels: prometheus.Labels{"type_url": t.typeURL},
		}, func() float64 { return float64(t.size()) }))
	}
}
