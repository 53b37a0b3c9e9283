package coordinator

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/coordinator/attention"
	"hdsd/coordinator/tally"
	"hdsd/fleet"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/notify"
	"hdsd/peer/limit"
	"hdsd/ruling"
)

// alarms reports troubles of the whole fleet: by log events, by metrics and by notifications.
type alarms struct {
	log           zerolog.Logger
	metrics       *stateMetrics
	names         *outsideNames
	view          view
	tally         *tally.Tally
	panics        *tally.Panics
	onPanicChange func(cluster string)  // called with each cluster whose panic begins or ends
	notify        func([]notify.Change) // must not wait; may be nil
	onComplete    func()                // called once, after the first complete notification; nil afterwards
	pending       []notify.Change
	open          openConditions
	followed      *configv1.Metrics // for clusters with metrics of their own

	quorum              quorum          // the figures that tooFew is about
	tooFew              attention.Named // without a name
	probeLimit          probeLimit
	hasAnswers, settled bool
}

func newAlarms(log zerolog.Logger, m *stateMetrics, v view, names *outsideNames) alarms {
	return alarms{log: log, metrics: m, tally: tally.New(), panics: tally.NewPanics(), view: v, onPanicChange: v.core.snapshots.Change, names: names}
}

func (a *alarms) observe(now time.Time, e machine.Effect) {
	m := a.view.core.Machine
	if _, answered := e.(machine.SourcesAnswered); !answered && a.view.core.follows() {
		return // the leader reports the troubles of all replicas
	}
	switch e := e.(type) {
	case machine.FleetChanged:
		a.settled = a.settled || e.Settled
		a.addFleetEvents(now, e.Events)
	case machine.VotesJudged:
		a.applyFindings(now, m.Aggregator, e.Effects)
	case machine.Logged:
		a.applyTransitions(m.Rulings, e.Transitions)
		a.decided(m.Rulings, e.Entry)
	case machine.ClustersApplied:
		a.applyClusters(now, a.view, e.Removed, e.Changed)
		if e.InitialHealthChanged {
			a.publishAll(m.Rulings, m.Rulings.Clusters())
		}
	case machine.SourcesAnswered:
		a.hasAnswers = true
	case machine.TickHandled:
		a.checkQuorum(now, newQuorum(m))
		a.checkProbeLimit(now, m.Targets)
		a.report(now)
		a.names.forget(func(own string) bool { return m.Rulings.Cluster(own) != nil })
	}
}

// reset forgets what is counted. The leader of replicas counts anew.
func (a *alarms) reset() {
	a.tally, a.panics, a.pending = tally.New(), tally.NewPanics(), nil
	a.quorum, a.tooFew, a.probeLimit, a.settled = quorum{}, attention.Named{}, probeLimit{}, false
	a.open.renew()
	a.follow(a.followed)
	a.metrics.set(a.tally.Counts(), a.tally.ZonesDown(), a.panics.Count())
}

// probeLimit is the latest state of the addresses that have no room for more probes.
type probeLimit struct {
	attention.Named // without a name
	addresses       int
	pace            limit.Pace
}

// applyTransitions counts transitions.
func (a *alarms) applyTransitions(rulings *ruling.Table, transitions []health.Transition) {
	for i := range transitions {
		t := &transitions[i]
		e := tally.Endpoint{Hash: t.Endpoint.Hash(), Key: &t.Endpoint, Status: t.To, Since: t.Time, Reason: t.Reason}
		if id, ok := rulings.Find(e.Hash); ok {
			ruled := rulings.Ruling(id)
			e.Status, e.Overridden = ruled.Health, ruled.Override != nil
		} else {
			e.Gone = rulings.Cluster(t.Endpoint.Cluster).Find(&t.Endpoint) == nil
		}
		a.tally.SetEndpoint(&e)
		a.publish(rulings, t.Endpoint)
	}
}

// applyClusters counts changed clusters anew.
func (a *alarms) applyClusters(now time.Time, v view, removed []string, changed []*catalog.Cluster) {
	for _, name := range removed {
		a.tally.Remove(name)
		a.panics.Remove(name)
	}
	a.publishAll(v.core.Rulings, slices.Values(changed))
	for _, k := range changed {
		if !k.IsChecked() {
			if k.IsUncheckable() {
				a.tally.SetUncheckable(k.Source.Name, now, k.UncheckableReason())
			} else {
				a.tally.Remove(k.Source.Name)
			}
			continue
		}
		a.tally.SetCluster(k.Source.Name, v.core.Aggregator.Observed(k.Source.Name), func(yield func(tally.Endpoint) bool) {
			var key health.Endpoint
			for i := range k.Endpoints {
				e := &k.Endpoints[i]
				c := v.Condition(e)
				key = e.Key()
				if !yield(tally.Endpoint{Hash: e.Hash(), Key: &key, Status: c.Status, Overridden: c.Overridden, Since: c.Since}) {
					return
				}
			}
		})
	}
}

// applyFindings notifies of doubts, and counts clusters that begin or cease to be observed.
func (a *alarms) applyFindings(now time.Time, judge *aggregate.Aggregator, e *aggregate.Effects) {
	a.addDoubts(now, e.Doubts)
	for _, name := range e.Crossed {
		a.tally.SetObserved(name, judge.Observed(name))
	}
}

// addDoubts adds doubts of checkers to the pending changes.
func (a *alarms) addDoubts(now time.Time, doubts []aggregate.DoubtChange) {
	for i := range doubts {
		if d := &doubts[i]; d.Checker != "" {
			a.pending = append(a.pending, notify.Change{Ended: !d.Doubted, Condition: notify.Condition{
				Key: notify.Key{Kind: notify.CheckerDoubted, Name: d.Checker}, Since: now, Command: attention.Checker(d.Checker),
				Text: "checker " + d.Checker + " is not believed: " + d.Reason,
			}})
		}
	}
}

// addFleetEvents adds losses and silences of checkers to the pending changes.
func (a *alarms) addFleetEvents(now time.Time, events []fleet.Event) {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case fleet.NoCheckers, fleet.NoCheckersOver:
			a.pending = append(a.pending, notify.Change{Ended: e.Kind == fleet.NoCheckersOver, Condition: notify.Condition{
				Key: notify.Key{Kind: notify.NoCheckers}, Since: now, Command: "hdsd checkers",
				Text: "no checker is connected: nothing is checked, and health stays what it was last",
			}})
		case fleet.FellSilent, fleet.ReportsAgain, fleet.Lost, fleet.NewcomerLost:
			id := e.Checkers[0]
			a.pending = append(a.pending, notify.Change{Ended: e.Kind != fleet.FellSilent, Condition: notify.Condition{
				Key: notify.Key{Kind: notify.CheckerSilent, Name: id}, Since: now, Command: attention.Checker(id),
				Text: "checker " + id + " is connected, and does not report",
			}})
		}
	}
}

// follow sets the clusters with metrics of their own.
func (a *alarms) follow(m *configv1.Metrics) {
	a.followed = m
	a.tally.Follow(a.metrics.series.follow(m))
}

// report logs and notifies all changes since the previous call, and updates the metrics.
func (a *alarms) report(now time.Time) {
	a.tellPanics(now)
	e := a.tally.Take()
	for i := range e.Clusters {
		a.logCluster(&e.Clusters[i])
	}
	for i := range e.Zones {
		a.logZone(&e.Zones[i])
	}
	a.metrics.series.set(e.Followed)
	a.metrics.set(a.tally.Counts(), a.tally.ZonesDown(), a.panics.Count())
	a.pending = append(a.pending, e.Conditions...)
	for i := range a.pending {
		a.names.rename(&a.pending[i].Condition)
	}
	a.pending = a.open.add(a.pending, a.hasAnswers && a.settled)
	a.post()
	if a.hasAnswers && a.settled && a.onComplete != nil {
		a.onComplete()
		a.onComplete = nil
	}
}

// post notifies the pending changes.
func (a *alarms) post() {
	if len(a.pending) > 0 && a.notify != nil {
		a.notify(a.pending)
	}
	a.pending = nil
}

// handOver ends the conditions that this replica has notified of: another replica leads, and notifies of what is wrong.
func (a *alarms) handOver() {
	if a.view.core.follows() {
		a.pending = a.open.endAll()
		a.post()
	}
}

// logCluster logs the beginning or end of a time in which a cluster is wholly down.
func (a *alarms) logCluster(g *tally.GroupChange) {
	if g.Idle {
		a.logIdle(g)
		return
	}
	if g.Over {
		a.log.Warn().Str("event", "cluster_down_over").EmbedObject(a.names.logFields(g.Name)).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("a cluster is no longer down as a whole")
		return
	}
	a.log.Error().Str("event", "cluster_down").EmbedObject(a.names.logFields(g.Name)).Int("endpoints", g.Endpoints).Time("since", g.Since).
		Msg("all endpoints of a cluster are down")
}

// logIdle logs the beginning or end of a time in which a cluster has no healthy endpoint, and is not wholly
// down.
func (a *alarms) logIdle(g *tally.GroupChange) {
	if g.Over {
		a.log.Warn().Str("event", "no_healthy_endpoint_over").EmbedObject(a.names.logFields(g.Name)).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("an endpoint of a cluster is healthy again, or all are down")
		return
	}
	a.log.Error().Str("event", "no_healthy_endpoint").EmbedObject(a.names.logFields(g.Name)).Int("endpoints", g.Endpoints).Int("down", g.Down).Time("since", g.Since).
		Msg("no endpoint of a cluster is healthy: those that are not down drain")
}

// logZone logs the beginning or end of a time in which a zone is wholly down.
func (a *alarms) logZone(g *tally.GroupChange) {
	if g.Over {
		a.log.Warn().Str("event", "zone_down_over").Str("zone", g.Name).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("a zone is no longer down as a whole")
		return
	}
	a.log.Error().Str("event", "zone_down").Str("zone", g.Name).Int("endpoints", g.Endpoints).Time("since", g.Since).
		Msg("all endpoints in a zone are down")
}

// stateMetrics show the clusters by state, and the zones that are down.
type stateMetrics struct {
	states [attention.Unchecked + 1]prometheus.Gauge
	zones  prometheus.Gauge
	panics prometheus.Gauge
	short  prometheus.Gauge
	series *series

	fullAddresses, waitingEndpoints prometheus.Gauge // addresses without room for more probes, and their waiting endpoints
}

// stateNames are the names of attention.State in labels.
var stateNames = [...]string{
	attention.OK: "ok", attention.SomeDown: "some_down", attention.HalfDown: "half_down", attention.AllDown: "all_down", attention.Unobserved: "unobserved",
	attention.NoneHealthy: "none_healthy", attention.Unchecked: "unchecked",
}

func newStateMetrics(f factory) stateMetrics {
	m := stateMetrics{
		zones:            f.gauge("hdsd_zones_down", "Zones of which all endpoints are down."),
		panics:           f.gauge("hdsd_clusters_in_panic", "Clusters whose published health Envoys disregard, since too few endpoints are healthy; not those that are wholly down."),
		short:            f.gauge("hdsd_endpoints_short_of_votes", "Endpoints of which most planned votes were lost lately, so that nothing takes them down."),
		fullAddresses:    f.gauge("hdsd_probe_limited_addresses", "Addresses that would get more than checkers.probe_targets.max_probes_per_second."),
		waitingEndpoints: f.gauge("hdsd_endpoints_probe_limited", "Endpoints that no checker checks, since their address would get more than checkers.probe_targets.max_probes_per_second."),
		series:           newSeries(),
	}
	byState := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hdsd_clusters_by_state", Help: "Clusters with checked endpoints, by how much of each is down.",
	}, []string{"state"})
	for state, name := range stateNames {
		m.states[state] = byState.WithLabelValues(name)
	}
	return m
}

// set sets the metrics.
func (m *stateMetrics) set(counts tally.Counts, zonesDown, panics int) {
	m.zones.Set(float64(zonesDown))
	m.panics.Set(float64(panics))
	for state, n := range counts {
		m.states[state].Set(float64(n))
	}
}
