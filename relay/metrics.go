package relay

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the counters of the relay.
type metrics struct {
	flips, refusals, failures, loads prometheus.Counter
}

func newMetrics(s *Server, registerer prometheus.Registerer) metrics {
	factory := promauto.With(registerer) // nil registers nothing
	gauge := func(name, help string, value func() int) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	gauge("hdsd_relay_streams", "Streams of data planes through the relay.", func() int { return len(s.openStreams()) })
	gauge("hdsd_relay_streams_from_memory", "Those of them that are served from memory, because the control plane cannot be reached.", s.outage.served)
	gauge("hdsd_relay_resources", "Different Clusters and ClusterLoadAssignments that clients of the relay have, or had until relay.keep ago.", s.stock.size)
	return metrics{
		flips: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_relay_health_responses_total", Help: "Responses with changed health that hdsd sent between those of the control plane.",
		}),
		refusals: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_relay_refusals_total", Help: "Responses of the control plane and of hdsd that clients of the relay refused.",
		}),
		loads: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_relay_load_reports_total", Help: "Load reports of clients that the relay passed on to the control plane.",
		}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_relay_upstream_failures_total", Help: "Streams to the control plane that could not be opened at any of its servers, or that it ended without a response.",
		}),
	}
}

// served returns the number of clients that are served from memory.
func (o *outage) served() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clients
}

// size returns the number of different resources.
func (s *stock) size() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, named := range s.byName {
		for _, list := range named {
			n += list.size()
		}
	}
	return n
}
