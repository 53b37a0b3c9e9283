package coordinator

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hdsd/coordinator/tally"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
)

// series implements prometheus.Collector for the metrics of single clusters. It adds up the versions of a cluster.
type series struct {
	outside func(own string) string // returns the outside name of a cluster; set once

	mu          sync.Mutex
	maxClusters int
	counts      map[string]seriesCount // by own name
	leftOut     map[string]struct{}    // clusters beyond maxClusters
}

// seriesCount holds the counts of a version of a cluster.
type seriesCount struct {
	cluster string // outside name
	tally.ClusterCount
}

func newSeries() *series {
	return &series{
		outside: func(own string) string { return own }, counts: map[string]seriesCount{}, leftOut: map[string]struct{}{},
	}
}

var (
	clusterLabels    = []string{"cluster"}
	seriesEndpoints  = prometheus.NewDesc("hdsd_cluster_endpoints", "Endpoints of a cluster of metrics.cluster_name_globs.", clusterLabels, nil)
	seriesDown       = prometheus.NewDesc("hdsd_cluster_endpoints_down", "Endpoints of it that are down.", clusterLabels, nil)
	seriesUnobserved = prometheus.NewDesc("hdsd_cluster_endpoints_unobserved", "Endpoints of it without a believed vote.", clusterLabels, nil)
	seriesLeftOut    = prometheus.NewDesc("hdsd_clusters_without_series", "Clusters of metrics.cluster_name_globs beyond metrics.max_clusters.", nil, nil)
)

// follow sets the clusters to show, and removes the previous ones. The result reports whether to show a cluster.
func (s *series) follow(m *configv1.Metrics) (follows func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxClusters = int(m.GetMaxClusters())
	clear(s.counts)
	clear(s.leftOut)
	globs := m.GetClusterNameGlobs()
	if len(globs) == 0 {
		return nil
	}
	return func(own string) bool {
		s.mu.Lock()
		_, shown := s.counts[own]
		_, leftOut := s.leftOut[own]
		s.mu.Unlock()
		name := s.outside(own)
		return shown || leftOut || slices.ContainsFunc(globs, func(glob string) bool { return source.Match(glob, name) })
	}
}

// set sets the counts of clusters. It removes clusters without endpoints.
func (s *series) set(counts []tally.ClusterCount) {
	if len(counts) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range counts {
		_, shown := s.counts[c.Name]
		switch {
		case c.Endpoints == 0:
			delete(s.counts, c.Name)
			delete(s.leftOut, c.Name)
		case shown || len(s.counts) < s.maxClusters:
			s.counts[c.Name] = seriesCount{s.outside(c.Name), c}
			delete(s.leftOut, c.Name)
		default:
			s.leftOut[c.Name] = struct{}{}
		}
	}
}

// Describe implements prometheus.Collector.
func (s *series) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{seriesEndpoints, seriesDown, seriesUnobserved, seriesLeftOut} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (s *series) Collect(metrics chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	show := func(desc *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	sums := map[string]tally.ClusterCount{}
	for _, c := range s.counts {
		sum := sums[c.cluster]
		sum.Endpoints, sum.Down, sum.Observed = sum.Endpoints+c.Endpoints, sum.Down+c.Down, sum.Observed+c.Observed
		sums[c.cluster] = sum
	}
	for name, c := range sums {
		show(seriesEndpoints, c.Endpoints, name)
		show(seriesDown, c.Down, name)
		show(seriesUnobserved, c.Endpoints-c.Observed, name)
	}
	show(seriesLeftOut, len(s.leftOut))
}
