package feed

import (
	"slices"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"github.com/prometheus/client_golang/prometheus"

	"hdsd/source/xds"
)

// Upstreams calls visit with the name and the status of each management server.
func (f *Feed) Upstreams(visit func(name string, status xds.Status)) {
	for _, o := range *f.open.Load() {
		if o.upstream != nil {
			visit(o.name, o.upstream.Status())
		}
	}
}

// Want implements Asker. Only management servers can be asked.
func (f *Feed) Want(name string, assignments []string) {
	for _, o := range *f.open.Load() {
		if o.name == name && o.upstream != nil {
			o.upstream.Want(assignments)
		}
	}
}

// Pending implements Asker.
func (f *Feed) Pending(name string) bool {
	return slices.ContainsFunc(*f.open.Load(), func(o *opened) bool {
		return o.name == name && o.upstream != nil && o.upstream.Pending()
	})
}

// The metrics of management servers have no labels: the clients list them by source.
var (
	upstreamCount     = prometheus.NewDesc("hdsd_upstreams", "Management servers among the sources.", nil, nil)
	upstreamConnected = prometheus.NewDesc("hdsd_upstreams_connected", "Management servers that answer, about every type.", nil, nil)
	upstreamAge       = prometheus.NewDesc("hdsd_upstream_age_seconds", "How long ago a management server was last there, for the one that is away longest; what it said stays in use. 0 while all answer.", nil, nil)
	upstreamFullness  = prometheus.NewDesc("hdsd_upstream_fullness_ratio", "Of the management server that is nearest to its limits of clusters, endpoints or bytes: how much it uses. At 1, more is refused.", nil, nil)
	sourceProblems    = prometheus.NewDesc("hdsd_source_problems", "Problems of the sources as they were last read.", nil, nil)
	sourcesHeld       = prometheus.NewDesc("hdsd_sources_held", "Sources that took away more than hold_shrinkage allows, so that something of them is held.", nil, nil)
	sourcesBroken     = prometheus.NewDesc("hdsd_sources_broken", "Sources of which hdsd refuses something, and uses the last valid version.", nil, nil)
	endpointsHeld     = prometheus.NewDesc("hdsd_source_endpoints_held", "Endpoints that their source has taken away, and that stay in use because they are held.", nil, nil)
	changesDelayed    = prometheus.NewDesc("hdsd_source_changes_delayed_total", "How often changes of a cluster began to wait because it alternates.", nil, nil)
	namesCount        = prometheus.NewDesc("hdsd_names", "DNS names that hdsd resolves for sources with resolve_names.", nil, nil)
	namesFailing      = prometheus.NewDesc("hdsd_names_failing", "Those of them whose last lookup gave no addresses, so that the last ones stay in use.", nil, nil)
	nameLookups       = prometheus.NewDesc("hdsd_name_lookups_total", "Lookups of names.", nil, nil)
	nameFailures      = prometheus.NewDesc("hdsd_name_failures_total", "Lookups of names that gave no addresses.", nil, nil)
	upstreamRefused   = prometheus.NewDesc("hdsd_upstream_resources_refused", "Resources of management servers whose latest update is refused, so that the last valid version stays in use.", nil, nil)
)

// Describe implements prometheus.Collector.
func (f *Feed) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{upstreamCount, upstreamConnected, upstreamAge, upstreamFullness, upstreamRefused, sourceProblems, sourcesBroken, sourcesHeld, endpointsHeld, changesDelayed,
		namesCount, namesFailing, nameLookups, nameFailures} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (f *Feed) Collect(ch chan<- prometheus.Metric) {
	var count, connected, refused int
	var age time.Duration
	var fullness float64
	f.Upstreams(func(_ string, known xds.Status) {
		count++
		fullness = max(fullness, known.Fullness)
		answers := true
		for i := range known.Types {
			t := &known.Types[i]
			answers = answers && t.Connected
			if !t.Connected && !t.Since.IsZero() {
				age = max(age, time.Since(t.Since))
			}
			for j := range t.Resources {
				if t.Resources[j].ClientStatus == adminv3.ClientResourceStatus_NACKED {
					refused++
				}
			}
		}
		if answers {
			connected++
		}
	})
	gauge := func(desc *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	gauge(upstreamCount, float64(count))
	gauge(upstreamConnected, float64(connected))
	gauge(upstreamAge, age.Seconds())
	gauge(upstreamFullness, fullness)
	gauge(upstreamRefused, float64(refused))
	gauge(sourceProblems, float64(f.intake.problems.count.Load()))
	gauge(sourcesBroken, float64(len(f.Broken())))
	held, endpoints := f.Held(), 0
	for _, s := range held {
		endpoints += s.Endpoints - s.Held.Endpoints
	}
	gauge(sourcesHeld, float64(len(held)))
	gauge(endpointsHeld, float64(endpoints))
	dns := f.intake.dns.resolver.Stats()
	gauge(namesCount, float64(dns.Names))
	gauge(namesFailing, float64(dns.Failing))
	ch <- prometheus.MustNewConstMetric(nameLookups, prometheus.CounterValue, float64(dns.Lookups))
	ch <- prometheus.MustNewConstMetric(nameFailures, prometheus.CounterValue, float64(dns.Failures))
	ch <- prometheus.MustNewConstMetric(changesDelayed, prometheus.CounterValue, float64(f.intake.guards.delays.Load()))
}
