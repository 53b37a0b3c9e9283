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

// alarms says what is wrong as a whole: by events, by metrics, and to whoever is to be
// notified.
type alarms struct {
	log     zerolog.Logger
	metrics *stateMetrics
	outside *outsideNames
	view    view
	tally   *tally.Tally
	panics  *tally.Panics
	changed func(cluster string)  // called when a panic for a cluster begins or ends
	tell    func([]notify.Change) // never waits; nil: nobody is told
	known   func()                // called once all that is wrong was told; nil: nobody asks
	pending []notify.Change

	quorum              quorum          // when tooFew was looked at
	tooFew              attention.Named // no name
	probeLimit          probeLimit
	hasAnswers, settled bool
}

func newAlarms(log zerolog.Logger, m *stateMetrics, v view, outside *outsideNames) alarms {
	return alarms{log: log, metrics: m, tally: tally.New(), panics: tally.NewPanics(), view: v, changed: v.core.snapshots.Change, outside: outside}
}

func (a *alarms) observe(now time.Time, e machine.Effect) {
	rooms := a.view.core.Machine
	switch e := e.(type) {
	case machine.FleetChanged:
		a.settled = a.settled || e.Settled
		a.watched(now, e.Events)
	case machine.Judged:
		a.judged(now, rooms.Judge, e.Effects)
	case machine.Decided:
		a.notice(rooms.Rulings, e.Transitions)
		a.decided(rooms.Rulings, e.Decision)
	case machine.ClustersApplied:
		a.apply(now, a.view, e.Removed, e.Changed)
		if e.InitialHealth {
			a.publishAll(rooms.Rulings, rooms.Rulings.Clusters())
		}
	case machine.SourcesAnswered:
		a.hasAnswers = true
	case machine.Ticked:
		a.left(now, newQuorum(rooms))
		a.limitProbes(now, rooms.Targets)
		a.raise(now)
		a.outside.forget(func(own string) bool { return rooms.Rulings.Cluster(own) != nil })
	}
}

// probeLimit is the latest state of the addresses that have no room for more probes.
type probeLimit struct {
	attention.Named // no name
	addresses       int
	pace            limit.Pace
}

// notice takes note of transitions.
func (a *alarms) notice(rulings *ruling.Table, transitions []health.Transition) {
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

// apply takes note of changed clusters.
func (a *alarms) apply(now time.Time, v view, removed []string, changed []*catalog.Cluster) {
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
		a.tally.SetCluster(k.Source.Name, v.core.Judge.Observed(k.Source.Name), func(yield func(tally.Endpoint) bool) {
			var key health.Endpoint
			for i := range k.Endpoints {
				e := &k.Endpoints[i]
				is := v.Condition(e)
				key = e.Key()
				if !yield(tally.Endpoint{Hash: e.Hash(), Key: &key, Status: is.Status, Overridden: is.Overridden, Since: is.Since}) {
					return
				}
			}
		})
	}
}

// judged takes note of what the votes come to.
func (a *alarms) judged(now time.Time, judge *aggregate.Aggregator, e *aggregate.Effects) {
	a.doubted(now, e.Doubts)
	for _, name := range e.Crossed {
		a.tally.SetObserved(name, judge.Observed(name))
	}
}

// doubted takes note of who is believed.
func (a *alarms) doubted(now time.Time, doubts []aggregate.DoubtChange) {
	for i := range doubts {
		if d := &doubts[i]; d.Checker != "" {
			a.pending = append(a.pending, notify.Change{Ended: !d.Doubted, Condition: notify.Condition{
				Key: notify.Key{Kind: notify.CheckerDoubted, Name: d.Checker}, Since: now, Command: attention.Checker(d.Checker),
				Text: "checker " + d.Checker + " is not believed: " + d.Reason,
			}})
		}
	}
}

// watched takes note of what the fleet says.
func (a *alarms) watched(now time.Time, events []fleet.Event) {
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

// follow takes which clusters have metrics of their own.
func (a *alarms) follow(m *configv1.Metrics) { a.tally.Follow(a.metrics.series.follow(m)) }

// raise says what changed since it was last called.
func (a *alarms) raise(now time.Time) {
	a.tellPanics(now)
	e := a.tally.Take()
	for i := range e.Clusters {
		a.cluster(&e.Clusters[i])
	}
	for i := range e.Zones {
		a.zone(&e.Zones[i])
	}
	a.metrics.series.set(e.Followed)
	a.metrics.set(a.tally.Counts(), a.tally.ZonesDown(), a.panics.Count())
	a.pending = append(a.pending, e.Conditions...)
	for i := range a.pending {
		a.outside.rename(&a.pending[i].Condition)
	}
	if len(a.pending) > 0 && a.tell != nil {
		a.tell(a.pending)
	}
	a.pending = nil
	if a.hasAnswers && a.settled && a.known != nil {
		a.known()
		a.known = nil
	}
}

// cluster logs that a cluster went down as a whole, or no longer is down.
func (a *alarms) cluster(g *tally.GroupChange) {
	if g.Idle {
		a.idle(g)
		return
	}
	if g.Over {
		a.log.Warn().Str("event", "cluster_down_over").EmbedObject(a.outside.logged(g.Name)).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("a cluster is no longer down as a whole")
		return
	}
	a.log.Error().Str("event", "cluster_down").EmbedObject(a.outside.logged(g.Name)).Int("endpoints", g.Endpoints).Time("since", g.Since).
		Msg("all endpoints of a cluster are down")
}

// idle logs that a cluster has no healthy endpoint, although not all are down; or that this is over.
func (a *alarms) idle(g *tally.GroupChange) {
	if g.Over {
		a.log.Warn().Str("event", "no_healthy_endpoint_over").EmbedObject(a.outside.logged(g.Name)).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("an endpoint of a cluster is healthy again, or all are down")
		return
	}
	a.log.Error().Str("event", "no_healthy_endpoint").EmbedObject(a.outside.logged(g.Name)).Int("endpoints", g.Endpoints).Int("down", g.Down).Time("since", g.Since).
		Msg("no endpoint of a cluster is healthy: those that are not down drain")
}

// zone logs that a zone went down as a whole, or no longer is down.
func (a *alarms) zone(g *tally.GroupChange) {
	if g.Over {
		a.log.Warn().Str("event", "zone_down_over").Str("zone", g.Name).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("a zone is no longer down as a whole")
		return
	}
	a.log.Error().Str("event", "zone_down").Str("zone", g.Name).Int("endpoints", g.Endpoints).Time("since", g.Since).
		Msg("all endpoints in a zone are down")
}

// stateMetrics show clusters by how much of each is down, and zones that are down.
type stateMetrics struct {
	states [attention.Unchecked + 1]prometheus.Gauge
	zones  prometheus.Gauge
	panics prometheus.Gauge
	short  prometheus.Gauge
	series *series

	fullAddresses, waitingEndpoints prometheus.Gauge // addresses without room for more probes, and endpoints that wait for room
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

func (m *stateMetrics) set(counts tally.Counts, zonesDown, panics int) {
	m.zones.Set(float64(zonesDown))
	m.panics.Set(float64(panics))
	for state, n := range counts {
		m.states[state].Set(float64(n))
	}
}
