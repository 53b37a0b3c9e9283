package coordinator

import (
	"cmp"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/store"
)

// registerStore registers the metrics of the history.
func registerStore(registerer prometheus.Registerer, s interface{ Stats() store.Stats }) {
	factory := promauto.With(registerer)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_pending", Help: "Transitions that wait for the disk.",
	}, func() float64 { return float64(s.Stats().Pending) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_committed_total", Help: "Transitions written to the disk.",
	}, func() float64 { return float64(s.Stats().Committed) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_dropped_total", Help: "Transitions missing from the history, because the disk did not accept them.",
	}, func() float64 { return float64(s.Stats().Dropped) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_gaps_total", Help: "Gaps in the history, because the disk did not accept transitions.",
	}, func() float64 { return float64(s.Stats().Gaps) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_skipped_total", Help: "Damaged values in the database that were skipped.",
	}, func() float64 { return float64(s.Stats().Skipped) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_failing", Help: "1 while the disk accepts nothing, else 0.",
	}, func() float64 { return flag(s.Stats().LastError != nil) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_clock_doubted", Help: "1 while hdsd doubts the machine's clock and does not delete history by it, else 0.",
	}, func() float64 { return flag(s.Stats().Doubted) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_bytes", Help: "Size of the database file.",
	}, func() float64 { return float64(s.Stats().Bytes) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_used_bytes", Help: "What of the database file is in use. The rest is used again before it grows.",
	}, func() float64 { return float64(s.Stats().Quota.Used) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_near_quota", Help: "1 while the history is near history.max_bytes, else 0.",
	}, func() float64 { return flag(s.Stats().Quota.Near) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_pruned_early_total", Help: "Transitions deleted before their time, to stay below history.max_bytes.",
	}, func() float64 { return float64(s.Stats().Quota.Pruned) })
}

// registerProcess registers the metrics of this process.
func (c *Coordinator) registerProcess(version string) {
	factory := promauto.With(c.registry)
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "hdsd_build_info", Help: "1, labelled with the versions of hdsd and Go.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(version, "unknown"), "goversion": runtime.Version()},
	}).Set(1)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_ready", Help: "1 while /readyz is 200, else 0.",
	}, func() float64 { return flag(c.isReady()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_mailbox_events", Help: "Events that wait for the core.",
	}, func() float64 { return float64(len(c.core.events)) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_watch_subscribers", Help: "Open watches of health, over gRPC and HTTP.",
	}, func() float64 { return float64(c.query.Watchers()) })
}

// flag returns 1 for true, and 0 for false.
func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
