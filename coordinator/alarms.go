package coordinator

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/aggregate"
	"hdsd/coordinator/attention"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/fleet"
	"hdsd/coordinator/ruling"
	"hdsd/coordinator/tally"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/internal/pace"
	"hdsd/notify"
)

// alarms says what is wrong as a whole: by events, by metrics, and to whoever is to be
// notified.
type alarms struct {
	log     zerolog.Logger
	metrics *stateMetrics
	tally   *tally.Tally
	panics  *tally.Panics
	changed func(cluster string)  // called when a panic for a cluster begins or ends
	tell    func([]notify.Change) // never waits; nil: nobody is told
	known   func()                // called once all that is wrong was told; nil: nobody asks
	pending []notify.Change

	tooFew              attention.Named // no name
	probeLimit          probeLimit
	hasAnswers, settled bool
}

func newAlarms(log zerolog.Logger, m *stateMetrics) alarms {
	return alarms{log: log, metrics: m, tally: tally.New(), panics: tally.NewPanics(), changed: func(string) {}}
}

// probeLimit is the latest state of the addresses that have no room for more probes.
type probeLimit struct {
	attention.Named // no name
	addresses       int
	pace            pace.Pace
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
func (a *alarms) apply(v view, removed []string, changed []*catalog.Cluster) {
	for _, name := range removed {
		a.tally.Remove(name)
		a.panics.Remove(name)
	}
	a.publishAll(v.core.rulings, slices.Values(changed))
	for _, k := range changed {
		if !k.IsChecked() {
			if a.tally.Remove(k.Source.Name); k.IsUncheckable() {
				a.tally.SetUncheckable(k.Source.Name)
			}
			continue
		}
		a.tally.SetCluster(k.Source.Name, v.core.judge.Observed(k.Source.Name), func(yield func(tally.Endpoint) bool) {
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
			a.pending = append(a.pending, notify.Change{Over: !d.Doubted, Condition: notify.Condition{
				Key: notify.Key{Kind: notify.CheckerDoubted, Name: d.Checker}, Since: now, Command: attention.Checker(d.Checker),
				Text: "checker " + d.Checker + " is not believed: " + d.Reason,
			}})
		}
	}
}

// watched takes note of what the fleet says.
func (a *alarms) watched(now time.Time, events []fleet.Event) {
	for i := range events {
		if kind := events[i].Kind; kind == fleet.NoCheckers || kind == fleet.NoCheckersOver {
			a.pending = append(a.pending, notify.Change{Over: kind == fleet.NoCheckersOver, Condition: notify.Condition{
				Key: notify.Key{Kind: notify.NoCheckers}, Since: now, Command: "hdsd checkers",
				Text: "no checker is connected: nothing is checked, and health stays what it was last",
			}})
		}
	}
}

// follow takes which clusters have metrics of their own.
func (a *alarms) follow(m *configv1.Metrics) { a.tally.Follow(a.metrics.series.follow(m)) }

// answered takes note that the sources have answered, or were given up.
func (a *alarms) answered() { a.hasAnswers = true }

// settle takes note that hdsd has settled.
func (a *alarms) settle() { a.settled = true }

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
	if a.pending = append(a.pending, e.Conditions...); len(a.pending) > 0 && a.tell != nil {
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
		a.log.Warn().Str("event", "cluster_down_over").Str("cluster", g.Name).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("a cluster is no longer down as a whole")
		return
	}
	a.log.Error().Str("event", "cluster_down").Str("cluster", g.Name).Int("endpoints", g.Endpoints).Time("since", g.Since).
		Msg("all endpoints of a cluster are down")
}

// idle logs that a cluster has no healthy endpoint, although not all are down; or that this is over.
func (a *alarms) idle(g *tally.GroupChange) {
	if g.Over {
		a.log.Warn().Str("event", "no_healthy_endpoint_over").Str("cluster", g.Name).Int("endpoints", g.Endpoints).Int("down", g.Down).
			Msg("an endpoint of a cluster is healthy again, or all are down")
		return
	}
	a.log.Error().Str("event", "no_healthy_endpoint").Str("cluster", g.Name).Int("endpoints", g.Endpoints).Int("down", g.Down).Time("since", g.Since).
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
