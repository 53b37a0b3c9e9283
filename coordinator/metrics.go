package coordinator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hdsd/aggregate"
	"hdsd/api"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/rollout/canary"
	"hdsd/ruling"
)

// metrics holds the metrics of the core by room. No label has a value that a peer can make up.
type metrics struct {
	rulings      rulingMetrics
	plan         planMetrics
	fleet        fleetMetrics
	votes        voteMetrics
	rollout      rolloutMetrics
	states       stateMetrics
	mailboxDelay prometheus.Observer // delay of events in the mailbox
	*present
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	f := factory{promauto.With(registerer)}
	m := &metrics{
		rulings: newRulingMetrics(f), plan: newPlanMetrics(f), fleet: newFleetMetrics(f), votes: newVoteMetrics(f), rollout: newRolloutMetrics(f), states: newStateMetrics(f),
		mailboxDelay: f.histogram("hdsd_mailbox_wait_seconds", "How long events waited for the core, the one goroutine that decides."),
	}
	registerer.MustRegister(m.states.series)
	return m
}

// restored shows the restored state.
func (m *metrics) restored(s *log.State) {
	m.rulings.frozen.Set(flag(s.Freeze != nil))
	m.votes.distrusted.Set(float64(m.Trust.Distrusted()))
}

func (m *metrics) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.SpecifierMade:
		m.rollout.specifiers.Inc()
	case machine.FleetChanged:
		if e.Planned {
			m.plan.update(m.Fleet.Plan, e.Moves)
		}
		if e.Recount {
			m.fleet.update(m.Fleet.Figures())
		}
	case machine.VotesJudged:
		m.votes.count(e.Effects)
	case machine.TrialsChanged:
		for i := range e.Events {
			m.rollout.count(e.Events[i].Kind)
		}
		m.rollout.update(m.Rollout.Trials(), m.Rollout.BlockedClusters())
	case machine.Logged:
		m.applyEntry(e.Entry)
	case machine.ChangesLeftOut:
		m.rulings.leftOut.Add(float64(e.Count))
	case machine.ClustersApplied:
		m.rulings.update(m.Rulings)
		m.plan.redundancy.Set(float64(m.Rules.Redundancy()))
		m.rollout.update(m.Rollout.Trials(), m.Rollout.BlockedClusters())
	case machine.TickHandled:
		m.votes.update(m.Aggregator)
		m.rulings.paced.Set(float64(m.Rulings.Paced()))
	}
}

// reset shows what a replica has that no longer leads: no checkers and votes.
func (m *metrics) reset() {
	m.plan.update(m.Fleet.Plan, 0)
	m.fleet.update(m.Fleet.Figures())
	m.votes.update(m.Aggregator)
	for _, g := range []prometheus.Gauge{m.votes.doubtedCheckers, m.votes.doubtedPaths, m.votes.blind, m.votes.massFailures} {
		g.Set(0)
	}
	m.rollout.update(m.Rollout.Trials(), m.Rollout.BlockedClusters())
}

// applyEntry shows an entry of the log.
func (m *metrics) applyEntry(entry *log.Entry) {
	if entry.Freeze != nil {
		m.rulings.frozen.Set(flag(entry.Freeze.After != nil))
	}
	if entry.Trust != nil {
		m.votes.distrusted.Set(float64(m.Trust.Distrusted()))
	}
	if len(entry.Overrides) > 0 {
		m.rulings.setOverrides(m.Rulings.Overrides())
	}
	if len(entry.Transitions) > 0 {
		m.rulings.setHealth(m.Rulings.Counts())
	}
	for i := range entry.Transitions {
		m.rulings.count(&entry.Transitions[i])
	}
}

// factory makes and registers metrics.
type factory struct{ promauto.Factory }

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (f factory) histogram(name, help string) prometheus.Observer {
	return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds})
}

// rulingMetrics show clusters, endpoints and their published health.
type rulingMetrics struct {
	clusters, endpoints, quarantined, shadowed, frozen, overridden, paced prometheus.Gauge

	leftOut     prometheus.Counter
	overrides   *prometheus.GaugeVec   // by kind
	transitions *prometheus.CounterVec // by health
	byHealth    [len(ruling.Counts{})]prometheus.Gauge
}

// overrideKinds are the kinds of overrides by the status that they set.
var overrideKinds = map[health.Status]string{health.Draining: "drain", health.Healthy: "healthy", health.Unhealthy: "unhealthy"}

func newRulingMetrics(f factory) rulingMetrics {
	m := rulingMetrics{
		clusters:    f.gauge("hdsd_clusters", "Clusters of all sources, checked or not."),
		endpoints:   f.gauge("hdsd_endpoints", "Endpoints that are checked, or whose last verdict is held."),
		quarantined: f.gauge("hdsd_quarantined", "Clusters and endpoints that are not checked because what their source says cannot be checked, or not safely. Those that only lack a checker are in hdsd_endpoints_stranded."),
		shadowed:    f.gauge("hdsd_clusters_shadowed", "Clusters with checked endpoints whose verdicts are not published, because of mode: SHADOW."),
		frozen:      f.gauge("hdsd_frozen", "1 while publishing is frozen, else 0."),
		overridden:  f.gauge("hdsd_endpoints_overridden", "Endpoints whose health an override decides."),
		paced:       f.gauge("hdsd_endpoints_paced", "Endpoints whose verdict changed too often lately for each change to be published and recorded."),
		leftOut:     f.counter("hdsd_changes_left_out_total", "Changes of verdicts that were not published and recorded, because the endpoint changed too often."),
		overrides: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hdsd_overrides", Help: "Overrides in force, by what they do.",
		}, []string{"kind"}),
		transitions: f.NewCounterVec(prometheus.CounterOpts{
			Name: "hdsd_transitions_total", Help: "Changed verdicts, by the health after.",
		}, []string{"to"}),
	}
	for _, kind := range overrideKinds {
		m.overrides.WithLabelValues(kind) // the series exists from the start
	}
	byHealth := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hdsd_endpoints_by_health", Help: "Endpoints that are checked, or whose last verdict is held, by their health.",
	}, []string{"health"})
	for status := health.Unknown; status.Valid(); status++ {
		m.byHealth[status] = byHealth.WithLabelValues(status.String())
		m.transitions.WithLabelValues(status.String()) // the series exists from the start
	}
	return m
}

// update shows a change of the clusters.
func (m *rulingMetrics) update(t *ruling.Table) {
	m.clusters.Set(float64(len(t.Names())))
	m.endpoints.Set(float64(t.Len()))
	quarantined, shadowed := t.Exceptions()
	m.quarantined.Set(float64(quarantined))
	m.shadowed.Set(float64(shadowed))
	m.setHealth(t.Counts())
	m.setOverrides(t.Overrides())
}

// setHealth shows the number of endpoints by health.
func (m *rulingMetrics) setHealth(counts ruling.Counts) {
	for status := range m.byHealth {
		m.byHealth[status].Set(float64(counts[status]))
	}
}

// setOverrides shows the overrides by kind.
func (m *rulingMetrics) setOverrides(overrides []ruling.Override) {
	byKind, endpoints := map[health.Status]int{}, 0
	for i := range overrides {
		byKind[overrides[i].Status]++
		endpoints += overrides[i].Endpoints
	}
	for status, kind := range overrideKinds {
		m.overrides.WithLabelValues(kind).Set(float64(byKind[status]))
	}
	m.overridden.Set(float64(endpoints))
}

// count counts a transition.
func (m *rulingMetrics) count(t *health.Transition) {
	if t.From != t.To { // equal when an override begins or ends without a change of health
		m.transitions.WithLabelValues(t.To.String()).Inc()
	}
}

// planMetrics show the plan.
type planMetrics struct {
	moves prometheus.Counter
	short prometheus.Gauge

	redundancy prometheus.Gauge

	digest   *prometheus.GaugeVec
	duration prometheus.Observer
}

func newPlanMetrics(f factory) planMetrics {
	return planMetrics{
		redundancy: f.gauge("hdsd_redundancy", "assignment.redundancy: how many checkers each endpoint should have, unless a policy says otherwise."),

		moves: f.counter("hdsd_plan_moves_total", "Seats added or removed."),
		short: f.gauge("hdsd_endpoints_short", "Endpoints with fewer checkers than they should have, or none, because all that are able are at their max_checks_per_second."),
		digest: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hdsd_plan_info", Help: "1, labelled with the digest of the plan.",
		}, []string{"digest"}),
		duration: f.histogram("hdsd_plan_seconds", "How long a change of the plan took to compute."),
	}
}

// update shows a change of the plan, and the number of moved seats.
func (m *planMetrics) update(p *fleet.Plan, moves int) {
	m.moves.Add(float64(moves))
	m.short.Set(float64(p.Short()))
	m.digest.Reset()
	m.digest.WithLabelValues(api.DigestText(p.Digest())).Set(1)
}

// fleetMetrics show the number of checkers by state.
type fleetMetrics struct{ connected, seated, silent, stranded, probation prometheus.Gauge }

func newFleetMetrics(f factory) fleetMetrics {
	return fleetMetrics{
		connected: f.gauge("hdsd_checkers_connected", "Checkers that have a stream, or fetch."),
		seated:    f.gauge("hdsd_checkers", "Checkers that are connected or whose seat is kept."),
		silent:    f.gauge("hdsd_checkers_silent", "Connected checkers that report nothing of what they were sent."),
		probation: f.gauge("hdsd_checkers_on_probation", "Connected checkers whose votes do not decide yet."),
		stranded:  f.gauge("hdsd_endpoints_stranded", "Endpoints that no connected checker is able to check."),
	}
}

// update shows the figures of the fleet.
func (m *fleetMetrics) update(figures fleet.Figures) {
	m.connected.Set(float64(figures.Connected))
	m.seated.Set(float64(figures.Seated))
	m.silent.Set(float64(figures.Silent))
	m.stranded.Set(float64(figures.Stranded))
	m.probation.Set(float64(figures.Probation))
}

// voteMetrics show the findings about votes.
type voteMetrics struct {
	doubtedCheckers, doubtedPaths, blind, distrusted prometheus.Gauge
	damped, unobserved, massFailures                 prometheus.Gauge
	voters                                           [aggregate.ManyVoters + 1]prometheus.Gauge
	massFailuresTotal                                prometheus.Counter
	delay                                            prometheus.Observer // from a report to the publication of its effects
}

func newVoteMetrics(f factory) voteMetrics {
	m := voteMetrics{
		doubtedCheckers:   f.gauge("hdsd_checkers_doubted", "Checkers whose downs do not count, because their peers contradict too many of them."),
		doubtedPaths:      f.gauge("hdsd_paths_doubted", "Pairs of zones where the downs of one zone's checkers about the other's endpoints do not count. The checkers of all other zones together count as one zone."),
		blind:             f.gauge("hdsd_checkers_blind", "Checkers that said up through two outages in a row that their peers saw."),
		distrusted:        f.gauge("hdsd_checkers_distrusted", "Checkers that an operator distrusts, connected or not."),
		damped:            f.gauge("hdsd_endpoints_damped", "Endpoints that are held down because they flap, while their checkers say up."),
		unobserved:        f.gauge("hdsd_endpoints_unobserved", "Endpoints without a believed vote."),
		massFailures:      f.gauge("hdsd_mass_failures", "Clusters of which one round would have taken more than half down, while that is held."),
		massFailuresTotal: f.counter("hdsd_mass_failures_total", "How often one round would have taken more than half of a cluster down."),
		delay:             f.histogram("hdsd_verdict_delay_seconds", "From reading a report with changed votes to publishing what follows."),
	}
	voters := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hdsd_endpoints_by_voters", Help: "Endpoints that are checked, or whose last verdict is held, by the number of believed votes.",
	}, []string{"voters"})
	for n, name := range []string{"0", "1", "2", "3+"} {
		m.voters[n] = voters.WithLabelValues(name)
	}
	return m
}

// update shows the state of the aggregator.
func (m *voteMetrics) update(a *aggregate.Aggregator) {
	m.damped.Set(float64(a.Damped()))
	m.unobserved.Set(float64(a.Unobserved()))
	for n, endpoints := range a.Voters() {
		m.voters[n].Set(float64(endpoints))
	}
}

// count counts findings that begin and end.
func (m *voteMetrics) count(e *aggregate.Effects) {
	for i := range e.Doubts {
		if e.Doubts[i].Checker != "" {
			step(m.doubtedCheckers, e.Doubts[i].Doubted)
		} else {
			step(m.doubtedPaths, e.Doubts[i].Doubted)
		}
	}
	for i := range e.Blindness {
		step(m.blind, e.Blindness[i].Blind)
	}
	for i := range e.MassFailures {
		step(m.massFailures, !e.MassFailures[i].Over)
		if !e.MassFailures[i].Over {
			m.massFailuresTotal.Inc()
		}
	}
}

// step increments or decrements a gauge.
func step(g prometheus.Gauge, up bool) {
	if up {
		g.Inc()
	} else {
		g.Dec()
	}
}

// rolloutMetrics show trials of clusters, and their results.
type rolloutMetrics struct {
	trials, blocked          prometheus.Gauge
	proven, lost, specifiers prometheus.Counter
}

func newRolloutMetrics(f factory) rolloutMetrics {
	return rolloutMetrics{
		trials:     f.gauge("hdsd_canary_trials", "New or changed clusters that one checker has before the others."),
		blocked:    f.gauge("hdsd_canary_blocked", "Clusters whose present version nobody tries, because two checkers were lost while they did."),
		proven:     f.counter("hdsd_canary_proven_total", "Trials that succeeded."),
		lost:       f.counter("hdsd_canary_lost_total", "Trials that ended with the loss of their checker."),
		specifiers: f.counter("hdsd_specifiers_built_total", "Specifiers built, sent or not."),
	}
}

// update shows the number of trials and of blocked clusters.
func (m *rolloutMetrics) update(trials, blocked int) {
	m.trials.Set(float64(trials))
	m.blocked.Set(float64(blocked))
}

// count counts the end of a trial.
func (m *rolloutMetrics) count(kind canary.Kind) {
	switch kind {
	case canary.Proven:
		m.proven.Inc()
	case canary.Lost, canary.Blocked:
		m.lost.Inc()
	case canary.Started, canary.NotAccepted, canary.Withdrawn:
	}
}
