package coordinator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestSourceLimit covers a cluster beyond the limits: hdsd sets it aside, shows this in metrics, and takes it
// when there is room.
func TestSourceLimit(t *testing.T) {
	t.Parallel()
	names := strings.Split("abcdefghijk", "")
	m := newManagement(t)
	m.says(byEDS(names[:9]...), endpoints("a", noWord, "192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80"), endpoints("b", noWord, "192.0.2.4:80"))
	m.come()
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "0.1s", "")+"limits: {max_source_clusters: 10, max_source_endpoints: 12}\n", static("local", "192.0.2.1:80"))
	s.ready()
	full := func(ratio float64, texts ...string) {
		t.Helper()
		s.eventually("it to show", func() bool {
			_, text := s.get("/v1/clusters")
			for _, part := range texts {
				if !strings.Contains(text, part) {
					return false
				}
			}
			return s.scrape().sum("hdsd_upstream_fullness_ratio") == ratio
		})
	}
	full(0.9, `"name":"i"`)
	m.says(byEDS(names...), endpoints("a", noWord, list(12)...), endpoints("b", noWord, "192.0.2.4:80"))
	full(1, "the management server has 10 clusters already", "limits.max_source_clusters")
	if rows := s.upstreamRows("upstream"); !strings.Contains(rows[1].LastError, "with its 12 endpoints") || !strings.Contains(rows[0].LastError, "1 of 2 resources refused: k (") {
		t.Errorf("shown are %+v", rows)
	}
	fewer := byEDS(names[2:]...)
	fewer[8].(*clusterv3.Cluster).ConnectTimeout = durationpb.New(2 * time.Second) // what does not change is not sent again
	m.says(fewer, endpoints("k", noWord, list(12)...))
	full(1, `"name":"k"`)
	s.eventually("all to be taken", func() bool {
		rows := s.upstreamRows("upstream")
		return rows[0].LastError == "" && rows[1].LastError == ""
	})
}

// list gives addresses.
func list(count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprintf("198.51.100.%d:80", i))
	}
	return all
}
