package coordinator

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hdsd/coordinator/tally"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
)

// series are the metrics of single clusters. It implements prometheus.Collector.
type series struct {
	mu      sync.Mutex
	most    int
	counts  map[string]tally.ClusterCount
	leftOut map[string]struct{} // clusters that there was no room for
}

func newSeries() *series {
	return &series{counts: map[string]tally.ClusterCount{}, leftOut: map[string]struct{}{}}
}

var (
	clusterLabels    = []string{"cluster"}
	seriesEndpoints  = prometheus.NewDesc("hdsd_cluster_endpoints", "Endpoints of a cluster of metrics.cluster_name_globs.", clusterLabels, nil)
	seriesDown       = prometheus.NewDesc("hdsd_cluster_endpoints_down", "Endpoints of it that are down.", clusterLabels, nil)
	seriesUnobserved = prometheus.NewDesc("hdsd_cluster_endpoints_unobserved", "Endpoints of it without a believed vote.", clusterLabels, nil)
	seriesLeftOut    = prometheus.NewDesc("hdsd_clusters_without_series", "Clusters of metrics.cluster_name_globs beyond metrics.max_clusters.", nil, nil)
)

// follow takes which clusters to show, and shows none of those before.
func (s *series) follow(m *configv1.Metrics) (follows func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = int(m.GetMaxClusters())
	clear(s.counts)
	clear(s.leftOut)
	globs := m.GetClusterNameGlobs()
	if len(globs) == 0 {
		return nil
	}
	return func(name string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool { return source.Match(glob, name) })
	}
}

// set shows how clusters are now. Without endpoints they are shown no more.
func (s *series) set(all []tally.ClusterCount) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range all {
		_, shown := s.counts[c.Name]
		switch {
		case c.Endpoints == 0:
			delete(s.counts, c.Name)
			delete(s.leftOut, c.Name)
		case shown || len(s.counts) < s.most:
			s.counts[c.Name] = c
			delete(s.leftOut, c.Name)
		default:
			s.leftOut[c.Name] = struct{}{}
		}
	}
}

// Describe implements prometheus.Collector.
func (s *series) Describe(to chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{seriesEndpoints, seriesDown, seriesUnobserved, seriesLeftOut} {
		to <- each
	}
}

// Collect implements prometheus.Collector.
func (s *series) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	show := func(desc *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	for name, c := range s.counts {
		show(seriesEndpoints, c.Endpoints, name)
		show(seriesDown, c.Down, name)
		show(seriesUnobserved, c.Endpoints-c.Observed, name)
	}
	show(seriesLeftOut, len(s.leftOut))
}
