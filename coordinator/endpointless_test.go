package coordinator_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// endpointless gives the clusters without endpoints, and why they have none.
func (s *site) endpointless() map[string]string {
	s.t.Helper()
	_, text := s.get("/v1/clusters")
	var answer struct {
		Clusters []struct {
			Name, NoEndpointsReason string
			Endpoints               int
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range answer.Clusters {
		if (c.Endpoints == 0) != (c.NoEndpointsReason != "") {
			s.t.Fatalf("of %s: %d endpoints, and %q", c.Name, c.Endpoints, c.NoEndpointsReason)
		}
		if c.Endpoints == 0 {
			all[c.Name] = c.NoEndpointsReason
		}
	}
	return all
}

// TestReasonForNoEndpoints covers the reason for as long as the cluster has no endpoints, and after a
// restart.
func TestReasonForNoEndpoints(t *testing.T) {
	t.Parallel()
	const cluster = "\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: "
	const local = cluster + `web
  type: EDS
  eds_cluster_config: {service_name: svc, eds_config: {ads: {}}}` + cluster + `nothing
  type: STATIC` + cluster + `empty
  type: STATIC
  load_assignment: {cluster_name: empty}` + cluster + `original
  type: ORIGINAL_DST
  lb_policy: CLUSTER_PROVIDED` + cluster + `odd
  cluster_type: {name: envoy.clusters.aggregate}
  lb_policy: CLUSTER_PROVIDED` + cluster + `elsewhere
  type: EDS
  eds_cluster_config: {eds_config: {path_config_source: {path: /etc/x.yaml}}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: lone
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: leds
  endpoints: [{leds_cluster_locality_config: {leds_collection_name: "xdstp://x", leds_config: {ads: {}}}}]` + cluster + `wrong
  connect_timeout: 0s
`
	m := newManagement(t)
	dir, text := t.TempDir(), quick+m.source("mesh", "0.1s", "")
	s := newSite(t, dir, text, local+static("local", "192.0.2.1:80"))
	s.ready()
	want := map[string]string{
		"nothing":   "it has no load_assignment",
		"empty":     "its load_assignment has none",
		"original":  "data planes find its endpoints themselves, as its type is ORIGINAL_DST",
		"odd":       "data planes find its endpoints themselves, as its cluster_type is envoy.clusters.aggregate",
		"elsewhere": "its endpoints are in /etc/x.yaml on the machines of data planes",
		"lone":      "its ClusterLoadAssignment of source local has none",
		"leds":      "its endpoints come by LEDS, which hdsd does not support",
		"wrong":     "connect_timeout: ",
		"web":       `no source has its ClusterLoadAssignment "svc" (mesh: it cannot be asked (`,
	}
	shown := func(want map[string]string) {
		t.Helper()
		s.eventually("each to be shown with the reason", func() bool {
			got := s.endpointless()
			for name, reason := range want {
				if !strings.Contains(got[name], reason) {
					return false
				}
			}
			return len(got) == len(want)
		})
	}
	shown(want)
	m.says(byEDS("late"))
	m.come()
	want["web"] = `no source has its ClusterLoadAssignment "svc" (mesh: it has `
	want["late"] = `no source has its ClusterLoadAssignment "late" (mesh: it has `
	shown(want)
	m.leave()
	s.stopped()
	s = newSite(t, dir, text, local+static("local", "192.0.2.1:80"))
	s.ready()
	want["late"] = `no source has its ClusterLoadAssignment "late" (mesh: it cannot be asked (`
	want["web"] = `no source has its ClusterLoadAssignment "svc" (mesh: it cannot be asked (`
	shown(want)
	m.says(byEDS("late"), endpoints("svc", noWord, "192.0.2.1:80"), endpoints("late", noWord, "192.0.2.2:80"))
	m.come()
	delete(want, "web")
	delete(want, "late")
	shown(want)
}
