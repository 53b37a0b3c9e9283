package coordinator_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"

	"hdsd/coordinator"
	"hdsd/validate"
)

// TestExamineWithServers covers their clusters, and the endpoints that clusters of files lack. Of the server
// of the relay, it covers only that it answers.
func TestExamineWithServers(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m := newManagement(t)
	m.says([]types.Resource{}, endpoints("svc", noWord, address))
	m.come()
	const web = `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: EDS
  eds_cluster_config: {service_name: svc, eds_config: {ads: {}}}
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
`
	c := configuration(t, t.TempDir(), quick+m.source("upstream", "5s", "")+"policies: [{cluster_name_glob: \"x-*\", redundancy: 2}]\n", web)
	self := coordinator.Node("hdsd", "1")
	found := validate.Examine(t.Context(), c, self)
	if found.Clusters != 1 || found.Endpoints != 1 || found.Checked != 1 || len(found.Unread) > 0 {
		t.Errorf("found %+v", found)
	}
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, `"x-*" matches no cluster`) {
		t.Errorf("problems: %+v", found.Problems)
	}
	if want := "source upstream: " + m.address + " answers; Clusters: 0"; !slices.Equal(found.Notes, []string{want}) {
		t.Errorf("notes: %q, want %q", found.Notes, want)
	}
	relayed := configuration(t, t.TempDir(), relaying(m, ""), web)
	found = validate.Examine(t.Context(), relayed, self)
	if len(found.Problems) > 0 || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], m.address+", answers") {
		t.Errorf("the relay's: %+v", found)
	}
	m.leave()
	c = configuration(t, t.TempDir(), quick+m.source("upstream", "0.2s", ""), web)
	found = validate.Examine(t.Context(), c, self)
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, m.address+" has not answered: ") {
		t.Errorf("without a server: %+v", found)
	}
}
