package scale

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hdsd/test/fleet"
)

// BenchmarkFirstStart has all checkers wait for a coordinator that knows nobody, and tells
// what they are sent until every endpoint has its verdict, and how long questions take
// meanwhile. With HDSD_SCALE=full it is a million endpoints, 10,000 clusters and 1,000 checkers.
func BenchmarkFirstStart(b *testing.B) {
	s := simulateStart(b)
	s.connect()
	for b.Loop() {
		began := time.Now()
		s.Start()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-ready")
		polling := s.poll("/v1/status", "/v1/clusters", "/healthz")
		s.until("every endpoint to have its verdict", slowly(s.allHealthy))
		b.ReportMetric(time.Since(began).Seconds(), "s-to-verdicts")
		s.until("every checker to follow", slowly(func() bool { return s.synced(len(s.checkers)) }))
		b.ReportMetric(time.Since(began).Seconds(), "s-to-synced")
		polling.leave(b)
		bytes, specifiers := s.told()
		most, lost := int64(0), 0
		for _, k := range s.checkers {
			most = max(most, k.specifiers.Load())
			if k.streams.Load() > 1 {
				lost++
			}
		}
		b.ReportMetric(float64(lost), "checkers-lost-a-stream")
		b.ReportMetric(float64(specifiers)/float64(len(s.checkers)), "specifiers/checker")
		b.ReportMetric(float64(most), "specifiers-at-most")
		b.ReportMetric(float64(bytes)/mega, "MB-sent")
		u := usageOf(b, s.PID())
		b.ReportMetric(u.processor.Seconds(), "cpu-s")
		b.ReportMetric(float64(u.peak)/mega, "peak-RSS-MB")
		b.ReportMetric(load(b), "load")
	}
}

// BenchmarkReady has nobody wait for the coordinator, and tells what it takes to be ready: to
// read the files and to prepare the clusters. HDSD_SCALE as above.
func BenchmarkReady(b *testing.B) {
	s := simulateStart(b)
	for b.Loop() {
		began := time.Now()
		s.Start()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-ready")
		u := usageOf(b, s.PID())
		b.ReportMetric(u.processor.Seconds(), "cpu-s")
		b.ReportMetric(float64(u.peak)/mega, "peak-RSS-MB")
		b.ReportMetric(load(b), "load")
	}
}

// restarts is how often BenchmarkRestarts kills the coordinator.
const restarts = 8

// BenchmarkRestarts kills the coordinator again and again, and tells how long it takes on
// average and at most until each endpoint is given to three checkers that follow. The first
// start comes before. HDSD_SCALE as above.
func BenchmarkRestarts(b *testing.B) {
	s := simulateStart(b)
	s.connect()
	toAll := func() float64 {
		began := time.Now()
		s.Start()
		s.until("every endpoint to have three checkers", slowly(func() bool { return s.covered(3) && s.synced(len(s.checkers)) }))
		return time.Since(began).Seconds()
	}
	for b.Loop() {
		b.ReportMetric(toAll(), "s-first")
		sum, most := 0.0, 0.0
		for range restarts {
			s.Kill()
			took := toAll()
			b.Logf("%.1f s at a load of %.1f", took, load(b))
			sum, most = sum+took, max(most, took)
		}
		b.ReportMetric(sum/restarts, "s-mean")
		b.ReportMetric(most, "s-at-most")
	}
}

// simulateStart prepares the fleet of a first start.
func simulateStart(b *testing.B) *simulation {
	clusters, each, checkers := clusters, endpoints/clusters, checkers
	if full() {
		clusters, each, checkers = 10_000, 100, 1000
	}
	s := simulate(b, newWorld(clusters, each), checkers, zones, time.Second, os.Getenv("HDSD_LIMITS")+"\n")
	if path := os.Getenv("HDSD_BINARY"); path != "" {
		s.Binary = path
	}
	s.split(1000)
	return s
}

// slowly returns a condition of a million endpoints that is looked at once a second: what it
// asks for is large.
func slowly(condition func() bool) func() bool {
	var last time.Time
	return func() bool {
		if full() && time.Since(last) < time.Second {
			return false
		}
		defer func() { last = time.Now() }()
		return condition()
	}
}

// split gives the coordinator a file for each so many clusters: a file has a largest size.
func (s *simulation) split(most int) {
	each := len(s.world.addresses) / s.world.clusters
	var sources bytes.Buffer
	for first := 0; first < s.world.clusters; first += most {
		var all []string
		for i := first; i < min(first+most, s.world.clusters); i++ {
			all = append(all, fleet.StaticCluster(clusterName(i), s.world.check, s.world.addresses[i*each:(i+1)*each]))
		}
		name := fmt.Sprintf("clusters-%d.yaml", first)
		s.put(name, []byte(fleet.ClusterFile(all...)))
		fmt.Fprintf(&sources, "- {name: from-%d, config_source: {path_config_source: {path: %s}}}\n", first, name)
	}
	config, err := os.ReadFile(filepath.Join(s.Dir, "hdsd.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	only := []byte("sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n")
	if !bytes.Contains(config, only) {
		s.t.Fatalf("the configuration has other sources:\n%s", config)
	}
	s.put("hdsd.yaml", bytes.ReplaceAll(config, only, append([]byte("sources:\n"), sources.Bytes()...)))
}

func (s *simulation) put(name string, text []byte) {
	if err := os.WriteFile(filepath.Join(s.Dir, name), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}
