package eds

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hdsd/publish"
)

func TestUnencodableResourcesAreCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := NewServer(Options{Metrics: registry})
	s.Update(publish.Update{Clusters: []publish.Cluster{{Message: &clusterv3.Cluster{Name: "good"}}, {Message: &clusterv3.Cluster{Name: "not UTF-8: \xff"}}}})
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP hdsd_xds_unencodable_resources_total Resources that could not be encoded.
# TYPE hdsd_xds_unencodable_resources_total counter
hdsd_xds_unencodable_resources_total 1
`), "hdsd_xds_unencodable_resources_total"); err != nil {
		t.Error(err)
	}
}
