package coordinator_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"

	"hdsd/coordinator"
	"hdsd/validate"
)

// TestAskExaminesWhatManagementServersSay: their clusters, and the endpoints that clusters
// of files lack. Of the relay's, only that it answers.
func TestAskExaminesWhatManagementServersSay(t *testing.T) {
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
	answers := validate.Ask(t.Context(), c, coordinator.Node("hdsd", "1"))
	if len(answers.Problems) > 0 || !slices.Equal(slices.Sorted(maps.Keys(answers.Sets)), []string{"upstream"}) {
		t.Fatalf("answers: %+v", answers)
	}
	found := validate.Examine(c, answers)
	if found.Clusters != 1 || found.Endpoints != 1 || found.Checked != 1 || len(found.Unread) > 0 {
		t.Errorf("found %+v", found)
	}
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, `"x-*" matches no cluster`) {
		t.Errorf("problems: %+v", found.Problems)
	}
	relayed := configuration(t, t.TempDir(), relaying(m, ""), web)
	answers = validate.Ask(t.Context(), relayed, coordinator.Node("hdsd", "1"))
	if len(answers.Sets)+len(answers.Problems) > 0 || len(answers.Notes) != 1 || !strings.Contains(answers.Notes[0], m.address+", answers") {
		t.Errorf("the relay's: %+v", answers)
	}
	m.leave()
	c = configuration(t, t.TempDir(), quick+m.source("upstream", "0.2s", ""), web)
	answers = validate.Ask(t.Context(), c, coordinator.Node("hdsd", "1"))
	if len(answers.Sets) > 0 || len(answers.Problems) != 1 || !strings.Contains(answers.Problems[0].Message, m.address+" has not answered: ") {
		t.Errorf("without a server: %+v", answers)
	}
}
