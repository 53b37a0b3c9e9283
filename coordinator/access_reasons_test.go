package coordinator_test

import (
	"fmt"
	"strings"
	"testing"
)

// shared is a cluster with an address under some service name.
func shared(cluster, service, address string) string {
	return fmt.Sprintf(`
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: %s
  type: STATIC
  load_assignment:
    cluster_name: %s
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: 1}}}}]}]
`, cluster, service, address)
}

// TestReasonsHideOtherClusters covers reasons for a viewer with a grant for some clusters: they name no other
// cluster and no source, and hide the reasons of doubts.
func TestReasonsHideOtherClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), static("a-secret", "127.0.0.1:2")+shared("pay-twin", "a-secret", "127.0.0.9")+`
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: pay-empty
  type: EDS
  eds_cluster_config: {eds_config: {ads: {}}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: pay-empty
`)
	s.served(ca)
	if code, text := s.tell(ca.named("all.internal"), "POST", "/v1/trust", `{"checker": "c1", "word": "DISTRUSTED", "reason": "it lies about a-secret"}`); code != 200 {
		t.Fatal(code, text)
	}
	for path, hidden := range map[string]string{
		"/v1/clusters": "source local", "/v1/clusters?cluster=pay-twin": "", "/v1/status": "", "/v1/checkers": "", "/v1/trust": "a-secret",
		"/v1/events": "a-secret", "/v1/events?cluster=pay-twin": "source local", "/v1/paths": "",
	} {
		if code, text := s.tell(ca.named("all.internal"), "GET", path, ""); code != 200 || !strings.Contains(text, hidden) {
			t.Errorf("%s of all: %d %s", path, code, text)
		}
		code, text := s.tell(ca.named("pay.internal"), "GET", path, "")
		if code != 200 || strings.Contains(text, "cluster \\\"a-secret") || strings.Contains(text, "lies about") || strings.Contains(text, "source local") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}
