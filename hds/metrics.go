package hds

import (
	"github.com/prometheus/client_golang/prometheus"
)

// reportKind is the way in which a report was read.
type reportKind int

// The kinds of report.
const (
	unchangedReport  reportKind = iota // equal to the one before, byte for byte
	changedReport                      // as expected, read in place
	unexpectedReport                   // another order or form, fully decoded
	heartbeat                          // no report inside
	reportKinds
)

var reportKindNames = [reportKinds]string{"unchanged", "changed", "unexpected", "heartbeat"}

// metrics are counted even without a registerer.
type metrics struct {
	streams    prometheus.Gauge
	refused    prometheus.Counter
	turnedAway prometheus.Counter
	replaced   prometheus.Counter
	reports    [reportKinds]prometheus.Counter
	votes      prometheus.Counter
	strange    prometheus.Counter
	sent       prometheus.Counter
	unaccepted prometheus.Counter
	stuck      prometheus.Counter
	silent     prometheus.Counter
	fetches    prometheus.Counter
	unbound    prometheus.Counter
	noForm     prometheus.Counter
	oversize   prometheus.Counter
	idle       prometheus.Counter
}

func newMetrics() (*metrics, []prometheus.Collector) {
	var collectors []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "hdsd_hds_" + name, Help: help})
		collectors = append(collectors, c)
		return c
	}
	m := &metrics{
		streams:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "hdsd_hds_streams", Help: "Checkers connected now."}),
		refused:    counter("refused_streams_total", "Streams and fetches refused because a checker of the same node id reports."),
		turnedAway: counter("turned_away_total", "Streams and fetches refused by checkers.admit, limits.max_ids_per_caller or limits.max_joins_per_minute, or ended by a new checkers.admit."),
		replaced:   counter("replaced_streams_total", "Silent streams ended because their node id came again, and fetches because they changed the version of the API."),
		votes:      counter("votes_total", "Votes that changed and were handed on."),
		strange:    counter("strange_entries_total", "Reported endpoints that the checker was not assigned, or of a status unknown here."),
		sent:       counter("specifiers_sent_total", "Specifiers sent to checkers."),
		unaccepted: counter("unaccepted_specifiers_total", "Specifiers that reports did not follow within three intervals."),
		stuck:      counter("stuck_streams_total", "Streams ended because the checker did not read."),
		silent:     counter("silent_checkers_total", "Checkers that reported nothing within three intervals of their first specifier."),
		fetches:    counter("fetches_total", "Fetches, by gRPC and REST."),
		unbound:    counter("unbound_reports_total", "Fetched reports refused because they were not shown to be of a checker that fetches."),
		idle:       counter("idle_streams_total", "Streams ended because no first message came."),
		oversize:   counter("refused_reports_total", "Reports and first messages refused because they list or weigh far more than the checker is assigned."),
		noForm:     counter("v2_left_out_clusters_total", "Clusters left out of specifiers because they have no v2 form."),
	}
	reports := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_hds_reports_total", Help: "Reports, by what had to be done to read them.",
	}, []string{"kind"})
	for kind := range m.reports {
		m.reports[kind] = reports.WithLabelValues(reportKindNames[kind])
	}
	return m, append(collectors, m.streams, reports)
}

// count adds one report.
func (m *metrics) count(r *reading) {
	m.reports[r.kind].Inc()
	if len(r.votes) > 0 {
		m.votes.Add(float64(len(r.votes)))
	}
	if r.strange > 0 {
		m.strange.Add(float64(r.strange))
	}
}
