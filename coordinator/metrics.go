package coordinator

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/health"
	"hdsd/store"
)

// metrics are the core's figures. None is labelled by what a peer can make up.
type metrics struct {
	transitions   *prometheus.CounterVec
	moves         prometheus.Counter
	clusterCount  prometheus.Gauge
	endpointCount prometheus.Gauge
	quarantine    prometheus.Gauge
	stranded      prometheus.Gauge
	connected     prometheus.Gauge
	seats         prometheus.Gauge
}

func newMetrics(to prometheus.Registerer) *metrics {
	factory := promauto.With(to)
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		transitions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "hdsd_transitions_total", Help: "Verdicts that changed, by the status after.",
		}, []string{"to"}),
		moves: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_plan_moves_total", Help: "Assignments of an endpoint to a checker made or taken away.",
		}),
		clusterCount:  gauge("hdsd_clusters", "Clusters of all sources."),
		endpointCount: gauge("hdsd_endpoints", "Endpoints that are checked."),
		quarantine:    gauge("hdsd_quarantined", "Clusters and endpoints that are not checked because that is not safe or not possible."),
		stranded:      gauge("hdsd_endpoints_stranded", "Endpoints that no connected checker is able to check."),
		connected:     gauge("hdsd_checkers_connected", "Checkers with an open stream."),
		seats:         gauge("hdsd_checkers", "Checkers that are connected or whose seat is kept."),
	}
	for to := health.Unknown; to.Valid(); to++ {
		m.transitions.WithLabelValues(to.String()) // shown from the start
	}
	return m
}

// watchStore exports how the history is doing.
func watchStore(to prometheus.Registerer, s *store.Store) {
	factory := promauto.With(to)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_pending", Help: "Transitions that wait for the disk.",
	}, func() float64 { return float64(s.Stats().Pending) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_committed_total", Help: "Transitions written to the disk.",
	}, func() float64 { return float64(s.Stats().Committed) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_dropped_total", Help: "Transitions missing from the history, as the disk did not take them.",
	}, func() float64 { return float64(s.Stats().Dropped) })
}

func (m *metrics) transition(t *health.Transition) {
	m.transitions.WithLabelValues(t.To.String()).Inc()
}

func (m *metrics) fleet(c *core) {
	m.connected.Set(float64(c.connected()))
	m.seats.Set(float64(len(c.checkers)))
	m.stranded.Set(float64(len(c.stranded)))
}

func (m *metrics) catalog(c *core) {
	m.clusterCount.Set(float64(len(c.clusters)))
	m.endpointCount.Set(float64(len(c.table.ids)))
	m.quarantine.Set(float64(c.quarantined))
	m.stranded.Set(float64(len(c.stranded)))
}
