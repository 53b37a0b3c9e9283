package coordinator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
)

// story is what was recorded of an address, each health once: the oldest first.
// It is a chain, or the test fails.
func (s *site) story(cluster, address string) string {
	s.t.Helper()
	_, text := s.get("/v1/transitions?cluster=" + cluster + "&address=" + address)
	var answer struct{ Transitions []struct{ From, To string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	all := []string{"UNKNOWN"}
	for _, t := range answer.Transitions {
		if last := all[len(all)-1]; t.From != last {
			s.t.Errorf("%s goes on from %s, and before it was %s", text, t.From, last)
		}
		all = append(all, t.To)
	}
	return strings.Join(all, " ")
}

func (s *site) wantStory(cluster, address, want string) {
	s.t.Helper()
	s.eventually(cluster+" "+address+" to have been "+want, func() bool { return s.story(cluster, address) == want })
}

// TestEndpointLeavesFileBesideUnreadServer covers an endpoint that returns to a file: nothing remains of its
// health from before the start.
func TestEndpointLeavesFileBesideUnreadServer(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	other, _ := upstream(t)
	status.Store(http.StatusServiceUnavailable)
	away := quick + newManagement(t).source("mesh", "0.1s", "")
	both, without := static("web", address)+static("db", other), static("db", other)
	s := newSite(t, t.TempDir(), away, both)
	s.ready()
	s.checker("c1")
	s.wantStory("web", address, "UNKNOWN UNHEALTHY")
	s.stopped()

	s = newSite(t, s.dir, away, both)
	s.ready()
	s.checker("c1")
	status.Store(http.StatusOK)
	s.wantStory("web", address, "UNKNOWN UNHEALTHY HEALTHY")
	move(t, s.dir, "clusters.yaml", "resources:\n"+without)
	s.wantStory("web", address, "UNKNOWN UNHEALTHY HEALTHY UNKNOWN")
	move(t, s.dir, "clusters.yaml", "resources:\n"+both)
	s.wantStory("web", address, "UNKNOWN UNHEALTHY HEALTHY UNKNOWN HEALTHY")
}

// lacksEndpoints is a cluster in a file that takes its endpoints by EDS.
func lacksEndpoints(name string) string {
	return `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: ` + name + `
  type: EDS
  connect_timeout: 1s
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
  health_checks: [{timeout: 1s, interval: 0.05s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}]
`
}

// assigned is an assignment in a file.
func assigned(name, address string) string {
	host, port, _ := strings.Cut(address, ":")
	return `
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: ` + name + `
  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: ` + host + `, port_value: ` + port + `}}}}]}]
`
}

// TestEndpointsLeaveDuringRestart covers the assignment alone and the cluster, of a file, of a management
// server and of both.
func TestEndpointsLeaveDuringRestart(t *testing.T) {
	t.Parallel()
	type state struct {
		file        string
		clusters    []types.Resource
		assignments func(address string) []types.Resource
	}
	none := func(string) []types.Resource { return nil }
	some := func(address string) []types.Resource { return []types.Resource{endpoints("web", noWord, address)} }
	for name, c := range map[string]struct{ before, after state }{
		"the assignment of a file":                {state{lacksEndpoints("web") + "ASSIGNED", nil, none}, state{lacksEndpoints("web"), nil, none}},
		"the assignment of a server":              {state{"", byEDS("web"), some}, state{"", byEDS("web"), none}},
		"a server's for a file":                   {state{lacksEndpoints("web"), nil, some}, state{lacksEndpoints("web"), nil, none}},
		"the cluster of a server":                 {state{"", byEDS("web"), some}, state{"", nil, none}},
		"the cluster of a file, not the server's": {state{lacksEndpoints("web"), nil, some}, state{"", nil, some}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := upstream(t)
			other, _ := upstream(t)
			m := newManagement(t)
			m.come()
			in := func(now state) string {
				m.says(now.clusters, now.assignments(address)...)
				return static("db", other) + strings.ReplaceAll(now.file, "ASSIGNED", assigned("web", address))
			}
			text := strings.Replace(quick, "settle: 0.05s", "settle: 0.5s", 1) + m.source("mesh", "1s", "")
			s := newSite(t, t.TempDir(), text, in(c.before))
			s.ready()
			s.checker("c1")
			s.wantStory("web", address, "UNKNOWN HEALTHY")
			s.stopped()
			s = newSite(t, s.dir, text, in(c.after))
			s.ready()
			s.wantStory("web", address, "UNKNOWN HEALTHY UNKNOWN")
			move(t, s.dir, "clusters.yaml", "resources:\n"+in(c.before))
			s.checker("c1")
			s.wantStory("web", address, "UNKNOWN HEALTHY UNKNOWN HEALTHY")
		})
	}
}
