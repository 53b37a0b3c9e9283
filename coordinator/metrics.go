package coordinator

import (
	"cmp"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/api"
	"hdsd/coordinator/rollout/canary"
	"hdsd/coordinator/ruling"
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
	short         prometheus.Gauge
	digest        *prometheus.GaugeVec
	connected     prometheus.Gauge
	seats         prometheus.Gauge
	verdicts      [healths]prometheus.Gauge
	rebuilds      prometheus.Counter
	planning      prometheus.Observer
	judging       prometheus.Observer
	waiting       prometheus.Observer
	silent        prometheus.Gauge
	frozen        prometheus.Gauge
	shadowed      prometheus.Gauge
	overrides     *prometheus.GaugeVec
	overruled     prometheus.Gauge

	doubtedCheckers, doubtedPaths prometheus.Gauge
	blindCheckers                 prometheus.Gauge
	damped, massFailures          prometheus.Gauge
	unobserved                    prometheus.Gauge
	distrusted                    prometheus.Gauge
	massFailuresSeen              prometheus.Counter
	canaryTrials, canaryBlocked   prometheus.Gauge
	canaryProven, canaryLost      prometheus.Counter
}

// overrideKinds are what overrides can do.
var overrideKinds = map[health.Status]string{health.Draining: "drain", health.Healthy: "healthy", health.Unhealthy: "unhealthy"}

// healths is how many statuses there are.
const healths = len(ruling.Counts{})

func newMetrics(to prometheus.Registerer) *metrics {
	factory := promauto.With(to)
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	histogram := func(name, help string) prometheus.Observer {
		return factory.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds})
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
		quarantine:    gauge("hdsd_quarantined", "Clusters and endpoints that are not checked because what their source says cannot be checked, or not safely. Those for which only a checker is missing are not among them: see hdsd_endpoints_stranded."),
		stranded:      gauge("hdsd_endpoints_stranded", "Endpoints that no connected checker is able to check."),
		short:         gauge("hdsd_endpoints_short", "Endpoints with fewer checkers than they should have, or none, since those that are able are at their ceilings."),
		digest: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hdsd_plan_info", Help: "1, labelled with the digest of who checks what.",
		}, []string{"digest"}),
		connected: gauge("hdsd_checkers_connected", "Checkers with an open stream."),
		seats:     gauge("hdsd_checkers", "Checkers that are connected or whose seat is kept."),
		frozen:    gauge("hdsd_frozen", "1 while verdicts are kept from the subscribers by a freeze, else 0."),
		overruled: gauge("hdsd_endpoints_overridden", "Endpoints whose health an operator's override decides."),
		shadowed:  gauge("hdsd_clusters_shadowed", "Clusters with checked endpoints whose verdicts are kept from the subscribers by the configuration."),
		rebuilds: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_specifiers_built_total", Help: "Specifiers made for checkers, sent or not.",
		}),
		planning:        histogram("hdsd_plan_seconds", "How long a change of the plan took to work out."),
		judging:         histogram("hdsd_verdict_delay_seconds", "From a report with changed votes to what follows from it being published."),
		waiting:         histogram("hdsd_mailbox_wait_seconds", "How long events waited for the core."),
		doubtedCheckers: gauge("hdsd_checkers_doubted", "Checkers whose downs are not believed, since their peers contradict too many of them."),
		blindCheckers:   gauge("hdsd_checkers_blind", "Checkers that said up through several outages in a row that their peers saw."),
		doubtedPaths:    gauge("hdsd_paths_doubted", "Pairs of zones where the checkers of one are not believed about the endpoints of the other; all others of a zone together are one more."),
		distrusted:      gauge("hdsd_checkers_distrusted", "Checkers that an operator distrusts, whether they are there or not."),
		damped:          gauge("hdsd_endpoints_damped", "Endpoints that are held down only because they flap."),
		unobserved:      gauge("hdsd_endpoints_unobserved", "Endpoints of which no checker that is believed says anything now."),
		massFailures:    gauge("hdsd_mass_failures", "Clusters of which more than half seemed to go down in one round, until that is over."),
		massFailuresSeen: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_mass_failures_total", Help: "How often more than half of a cluster seemed to go down in one round.",
		}),
		canaryTrials:  gauge("hdsd_canary_trials", "Clusters that are tried at one checker before others get them."),
		canaryBlocked: gauge("hdsd_canary_blocked", "Clusters whose present version nobody tries, since two checkers were lost while they did."),
		canaryProven: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_canary_proven_total", Help: "Trials of a cluster that ended well.",
		}),
		canaryLost: factory.NewCounter(prometheus.CounterOpts{
			Name: "hdsd_canary_lost_total", Help: "Trials of a cluster that ended with the loss of their checker.",
		}),
		silent: gauge("hdsd_checkers_silent", "Connected checkers that report nothing of what they were sent."),
	}
	m.overrides = factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hdsd_overrides", Help: "Overrides of operators that are in force, by what they do.",
	}, []string{"kind"})
	for _, kind := range overrideKinds {
		m.overrides.WithLabelValues(kind)
	}
	byHealth := factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hdsd_endpoints_by_health", Help: "Endpoints with a verdict or the wait for one, by their health.",
	}, []string{"health"})
	for to := health.Unknown; to.Valid(); to++ {
		m.verdicts[to] = byHealth.WithLabelValues(to.String())
		m.transitions.WithLabelValues(to.String()) // shown from the start
	}
	return m
}

// watchStore exports how the history is doing.
func watchStore(to prometheus.Registerer, s interface{ Stats() store.Stats }) {
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
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "hdsd_history_skipped_total", Help: "Damaged values that were met in the database and passed over.",
	}, func() float64 { return float64(s.Stats().Skipped) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_failing", Help: "1 while the disk takes nothing, else 0.",
	}, func() float64 { return flag(s.Stats().LastError != nil) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_clock_doubted", Help: "1 while the machine's clock is doubted, so that history is not deleted by it, else 0.",
	}, func() float64 { return flag(s.Stats().Doubted) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_history_bytes", Help: "Size of the database's file.",
	}, func() float64 { return float64(s.Stats().Bytes) })
}

// watchLife exports what this process is and whether it is ready.
func (c *Coordinator) watchLife(version string) {
	factory := promauto.With(c.registry)
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "hdsd_build_info", Help: "1, labelled with what runs.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(version, "unknown"), "goversion": runtime.Version()},
	}).Set(1)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_ready", Help: "1 while ready to serve, as /readyz says, else 0.",
	}, func() float64 { return flag(c.ready.Load()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_mailbox_events", Help: "Events that wait for the core.",
	}, func() float64 { return float64(len(c.core.events)) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hdsd_watch_subscribers", Help: "Watches of health under way, over gRPC and HTTP.",
	}, func() float64 { return float64(c.query.Watchers()) })
}

func flag(up bool) float64 {
	if up {
		return 1
	}
	return 0
}

func (m *metrics) transition(t *health.Transition) {
	if t.From != t.To { // else an override began or ended over the same health
		m.transitions.WithLabelValues(t.To.String()).Inc()
	}
}

// plan exports a change of the plan.
func (m *metrics) plan(c *core, moved int) {
	m.moves.Add(float64(moved))
	m.short.Set(float64(c.fleet.Short()))
	m.digest.Reset()
	m.digest.WithLabelValues(api.DigestText(c.fleet.Digest())).Set(1)
}

func (m *metrics) fleet(c *core) {
	figures := c.fleet.Figures()
	m.connected.Set(float64(figures.Connected))
	m.seats.Set(float64(figures.Seated))
	m.silent.Set(float64(figures.Silent))
	m.stranded.Set(float64(figures.Stranded))
}

// trial counts how a trial ended.
func (m *metrics) trial(kind canary.Kind) {
	switch kind {
	case canary.Proven:
		m.canaryProven.Inc()
	case canary.Lost, canary.Blocked:
		m.canaryLost.Inc()
	case canary.Started, canary.NotAccepted, canary.Withdrawn:
	}
}

// canaries exports how trials are doing.
func (m *metrics) canaries(c *core) {
	m.canaryTrials.Set(float64(c.rollout.Trials()))
	m.canaryBlocked.Set(float64(c.rollout.BlockedClusters()))
}

func (m *metrics) catalog(c *core) {
	m.clusterCount.Set(float64(len(c.rulings.Names())))
	m.endpointCount.Set(float64(c.rulings.Len()))
	m.quarantine.Set(float64(c.rulings.Quarantined()))
	m.canaries(c)
	m.shadowed.Set(float64(c.rulings.Shadowed()))
	m.judged(c.rulings.Counts())
	m.overridden(c.rulings)
}

func (m *metrics) overridden(rulings *ruling.Table) {
	byKind, endpoints := map[health.Status]int{}, 0
	for _, o := range rulings.Overrides() {
		byKind[o.Status]++
		endpoints += o.Endpoints
	}
	for status, kind := range overrideKinds {
		m.overrides.WithLabelValues(kind).Set(float64(byKind[status]))
	}
	m.overruled.Set(float64(endpoints))
}

func (m *metrics) judged(counts ruling.Counts) {
	for to := range m.verdicts {
		m.verdicts[to].Set(float64(counts[to]))
	}
}
