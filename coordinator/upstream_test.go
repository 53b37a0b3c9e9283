package coordinator_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/config"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/validate"
)

const noWord = corev3.HealthStatus_UNKNOWN

// upstreamRow is what /v1/clients has of an upstream and one type.
type upstreamRow struct {
	ID, Kind, TypeURL, LastAck, LastError string
	Connected                             bool
	Resources, Synced, Stale, Error       int
}

// upstreamRows are those of one source, clusters first.
func (s *site) upstreamRows(name string) (rows []upstreamRow) {
	s.t.Helper()
	_, text := s.get("/v1/clients")
	var answer struct{ Clients []upstreamRow }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range answer.Clients {
		if c.Kind == "upstream" && c.ID == name {
			rows = append(rows, c)
		}
	}
	if len(rows) != 2 || rows[0].TypeURL != resourcev3.ClusterType || rows[1].TypeURL != resourcev3.EndpointType {
		s.t.Fatalf("%s is shown as %+v", name, rows)
	}
	return rows
}

// TestManagementServer covers clusters from the first response of a management server until after an outage.
func TestManagementServer(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	other, _ := upstream(t)
	m := newManagement(t)
	m.says(byEDS("web", "db"), endpoints("web", noWord, address), endpoints("db", corev3.HealthStatus_DRAINING, other))
	m.come()
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "600s", ", node: {cluster: eg}")+"node_id: here\n", static("local", other))
	s.ready()
	s.checker("c1")
	p := s.plane()
	p.wait("web", "HEALTHY trusts")
	p.wait("db", "DRAINING trusts")
	p.wait("local", "HEALTHY trusts")

	m.says(byEDS("web", "db"), endpoints("web", noWord, address, other), endpoints("db", corev3.HealthStatus_DRAINING, other))
	p.wait("web", "HEALTHY HEALTHY trusts")
	s.eventually("everything to be synced", func() bool {
		rows := s.upstreamRows("upstream")
		return rows[0].Connected && rows[0].Synced == 2 && rows[1].Connected && rows[1].Synced == 2 && rows[1].LastAck != ""
	})

	// What it cannot mean is refused, and what was before stays.
	bad := byEDS("web", "db")
	bad[0].(*clusterv3.Cluster).HealthChecks[0].Timeout = nil
	m.says(bad, endpoints("web", noWord, address, other), endpoints("db", corev3.HealthStatus_DRAINING, other))
	s.eventually("a refusal", func() bool {
		rows := s.upstreamRows("upstream")
		return rows[0].Error == 1 && rows[0].Synced == 1 && strings.Contains(rows[0].LastError, "web")
	})
	s.shownAsClient()
	s.counted(1, 1, 1, false)
	s.eventually("the refusal to need attention", func() bool {
		found := s.needing("SOURCE_BROKEN")
		return len(found) == 1 && strings.HasPrefix(found[0], "source upstream: web: ") && strings.HasSuffix(found[0], " (its last valid version stays in use)")
	})

	// It is gone: what it said goes on to be checked.
	m.leave()
	s.eventually("the loss to show", func() bool {
		rows := s.upstreamRows("upstream")
		return !rows[0].Connected && !rows[1].Connected && rows[1].Stale == 2 && rows[1].LastError != "" &&
			rows[0].Error == 1 && rows[0].LastError == rows[1].LastError // though a refusal stands
	})
	s.counted(1, 0, 1, true)
	status.Store(http.StatusServiceUnavailable)
	p.wait("web", "UNHEALTHY HEALTHY trusts")
	m.says(byEDS("db"), endpoints("db", noWord, other))
	m.come()
	p.wait("db", "HEALTHY trusts")
	s.eventually("a cluster to go", func() bool { return s.healthOf("web", address) == "" })
	s.eventually("the refusal to be over", func() bool {
		rows := s.upstreamRows("upstream")
		return rows[0].Error == 0 && rows[0].Connected && len(s.needing("SOURCE_BROKEN")) == 0
	})
	s.counted(1, 1, 0, false)
}

// counted is for what the metrics say of upstreams.
func (s *site) counted(all, connected, refused float64, ages bool) {
	s.t.Helper()
	found := s.scrape()
	if found.sum("hdsd_upstreams") != all || found.sum("hdsd_upstreams_connected") != connected ||
		found.sum("hdsd_upstream_resources_refused") != refused || found.sum("hdsd_upstream_age_seconds") > 0 != ages {
		s.t.Errorf("got %v, %v, %v and %v", found.sum("hdsd_upstreams"), found.sum("hdsd_upstreams_connected"),
			found.sum("hdsd_upstream_resources_refused"), found.sum("hdsd_upstream_age_seconds"))
	}
}

// shownAsClient asks CSDS for hdsd as a client of a server that it refused a
// cluster of.
func (s *site) shownAsClient() {
	s.t.Helper()
	answer, err := statusv3.NewClientStatusDiscoveryServiceClient(s.dial()).FetchClientStatus(s.t.Context(), &statusv3.ClientStatusRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range answer.GetConfig() {
		if c.GetClientScope() != "upstream" {
			continue
		}
		states := map[string]int{}
		for _, r := range c.GetGenericXdsConfigs() {
			states[r.GetClientStatus().String()]++
			if refused := r.GetErrorState(); refused != nil && (r.GetName() != "web" || refused.GetFailedConfiguration() == nil || r.GetXdsConfig() == nil) {
				s.t.Errorf("refused is shown as %v", r)
			}
		}
		if c.GetNode().GetId() != "here" || c.GetNode().GetCluster() != "eg" || states["ACKED"] != 3 || states["NACKED"] != 1 {
			s.t.Errorf("node %v, states %v", c.GetNode(), states)
		}
		return
	}
	s.t.Errorf("hdsd is not among the clients: %v", answer)
}

// TestNoAbsenceBeforeSources covers EDS and CDS.
func TestNoAbsenceBeforeSources(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m := newManagement(t)
	m.says(byEDS("web"), endpoints("web", noWord, address))
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "600s", ""), static("local", address))
	s.eventually("a word on why it is not ready", func() bool {
		code, text := s.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "waiting for the sources upstream,")
	})
	p := s.plane("web", "local", "gone") // it had them from hdsd before
	s.checker("c1")
	s.eventually("what is known to be checked", func() bool { return s.healthOf("local", address) == "HEALTHY" })
	if got := p.told("web"); got != " trusts" && got != "trusts" {
		t.Errorf("web is %q", got)
	}
	p.wait("local", "HEALTHY trusts")
	if removed := p.removals(); removed > 0 {
		t.Errorf("%d removals were told", removed)
	}
	m.come()
	s.ready()
	p.wait("web", "HEALTHY trusts")
	s.eventually("the one that is gone to be told of, as cluster and assignment", func() bool { return p.removals() == 2 })
}

// TestInitialFetchTimeout covers a management server that does not answer.
func TestInitialFetchTimeout(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m := newManagement(t)
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "0.1s", ""), static("local", address))
	s.ready()
	p := s.plane()
	p.wait("local", "UNKNOWN checks")
	m.says(byEDS("web"), endpoints("web", noWord, address))
	m.come()
	p.wait("web", "UNKNOWN checks")
}

// TestRestartDuringOutageOfServer covers that no known cluster is gone.
func TestRestartDuringOutageOfServer(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m := newManagement(t)
	m.says(byEDS("web"), endpoints("web", noWord, address))
	m.come()
	dir, text := t.TempDir(), quick+m.source("upstream", "0.1s", "")
	s := newSite(t, dir, text, static("local", address))
	s.ready()
	s.checker("c1")
	s.recorded("web", address, "HEALTHY")
	s.stopped()
	m.leave()
	aged(t, filepath.Join(dir, "data", "source-*"), time.Hour)

	s = newSite(t, dir, text, static("local", address))
	s.ready()
	s.checker("c1")
	// A new cluster is not tried before hdsd has settled, and takes what is gone
	// for gone.
	move(t, dir, "clusters.yaml", "resources:\n"+static("local", address)+static("fresh", address))
	s.recorded("fresh", address, "HEALTHY")
	p := s.plane()
	p.wait("web", "HEALTHY trusts") // as it said before
	s.eventually("when that was to be known", func() bool {
		rows := s.upstreamRows("upstream")
		return rows[0].LastAck != "" && rows[1].LastAck != "" && s.scrape().sum("hdsd_upstream_age_seconds") >= time.Hour.Seconds()
	})
	other, _ := upstream(t)
	m.says(byEDS("web"), endpoints("web", noWord, address, other))
	m.come()
	p.wait("web", "HEALTHY HEALTHY trusts")
	answer, err := hdsdv1.NewQueryClient(s.dial()).ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{Cluster: "web", Address: address})
	if err != nil || len(answer.GetTransitions()) != 1 {
		t.Errorf("recorded are %v, %v", answer, err)
	}
	s.stopped()

	// Without the source, what it said is not kept.
	s = newSite(t, dir, quick, static("local", address))
	if left, err := filepath.Glob(filepath.Join(dir, "data", "source-*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	s.ready()
}

// aged has files be older than they are.
func aged(t *testing.T, pattern string, by time.Duration) {
	t.Helper()
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	at := time.Now().Add(-by)
	for _, file := range files {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReloadKeepsUnchangedServer covers that its stream stays. The clusters of a replaced server stay until
// the new one answers.
func TestReloadKeepsUnchangedServer(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m, next := newManagement(t), newManagement(t)
	m.says(byEDS("web"), endpoints("web", noWord, address))
	m.come()
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "0.1s", ""), static("local", address))
	s.ready()
	s.checker("c1")
	p := s.plane()
	p.wait("web", "HEALTHY trusts")
	reload := func(sources string) {
		t.Helper()
		if restart, err := s.Reload(configuration(t, s.dir, quick+sources, static("local", address))); err != nil || len(restart) > 0 {
			t.Fatalf("Reload: %v, %v", restart, err)
		}
	}
	reload(m.source("upstream", "0.1s", ", upstream_health: OURS"))
	p.wait("local", "HEALTHY trusts")
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_DRAINING, address, address[:len(address)-1]))
	s.eventually("the stream to be followed", func() bool { return strings.HasPrefix(p.told("web"), "HEALTHY ") && p.told("web") != "HEALTHY trusts" })
	if streams := m.streams.Load(); streams != 1 {
		t.Errorf("%d streams were opened", streams)
	}

	reload(next.source("upstream", "0.1s", ""))
	s.eventually("the other to be tried", func() bool { return s.upstreamRows("upstream")[0].LastError != "" })
	s.eventually("the worst of both to be told", func() bool { return strings.HasPrefix(p.told("web"), "DRAINING ") })
	next.says(byEDS("pay"), endpoints("pay", noWord, address))
	next.come()
	p.wait("pay", "HEALTHY trusts")
	s.eventually("what was before to go", func() bool { return s.healthOf("web", address) == "" })
	reload("")
	s.eventually("the upstream to go", func() bool { _, text := s.get("/v1/clients"); return !strings.Contains(text, `"kind":"upstream"`) })
}

// TestServerDoesNotWaitForReports covers reports an hour apart.
func TestServerDoesNotWaitForReports(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.says(byEDS("web"), endpoints("web", noWord, "192.0.2.1:80"))
	m.come()
	slow := strings.Replace(quick, "reporting: {interval: 0.05s}", "reporting: {interval: 3600s}", 1)
	s := newSite(t, t.TempDir(), slow+m.source("upstream", "600s", ""), static("local", "192.0.2.1:80"))
	s.ready()
	s.checker("c1")
	p := s.plane()
	p.wait("web", "UNKNOWN checks")
	for _, says := range []corev3.HealthStatus{corev3.HealthStatus_DRAINING, corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_HEALTHY} {
		m.says(byEDS("web"), endpoints("web", says, "192.0.2.1:80"))
		p.wait("web", says.String()+" checks")
	}
}

// TestFirstSourceHasSharedCluster covers the report of the duplicate.
func TestFirstSourceHasSharedCluster(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	other, _ := upstream(t)
	m := newManagement(t)
	m.says(byEDS("web", "db"), endpoints("web", noWord, other), endpoints("db", noWord, other))
	m.come()
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "600s", ""), static("web", address))
	s.ready()
	s.eventually("both sources to be there", func() bool {
		_, text := s.get("/v1/clusters")
		return strings.Contains(text, `"name":"db","quarantined":[],"source":"upstream"`) || strings.Contains(text, `"upstream"`) && strings.Contains(text, `"local"`)
	})
	s.checker("c1")
	s.eventually("the first source's endpoints", func() bool { return s.healthOf("web", address) == "HEALTHY" && s.healthOf("web", other) == "" })
	if _, text := s.get("/metrics"); !strings.Contains(text, "\nhdsd_source_problems 1\n") {
		t.Error("the conflict is not counted")
	}
}

// TestEndpointsForClustersOfFile covers a management server that hdsd asks for the assignments of clusters of
// another source, also if it has no clusters itself.
func TestEndpointsForClustersOfFile(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	other, _ := upstream(t)
	m := newManagement(t)
	m.says(nil, endpoints("svc", corev3.HealthStatus_DRAINING, address))
	m.come()
	const web = `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: EDS
  eds_cluster_config: {service_name: svc, eds_config: {ads: {}}}
  health_checks: [{timeout: 1s, interval: 0.05s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}]
`
	s := newSite(t, t.TempDir(), quick+m.source("upstream", "600s", ", upstream_health: OURS"), web+static("local", address))
	s.ready()
	s.checker("c1")
	p := s.plane()
	s.eventually("its health", func() bool { return p.told("svc") == "HEALTHY trusts" && s.healthOf("web", address) == "HEALTHY" })
	m.says(nil, endpoints("svc", noWord, address, other))
	s.eventually("another endpoint", func() bool { return p.told("svc") == "HEALTHY HEALTHY trusts" })

	// It is asked for what a file that changes lacks, and no more for what it
	// has.
	m.says(nil, endpoints("svc", noWord, address), endpoints("new", noWord, other))
	move(t, s.dir, "clusters.yaml", "resources:\n"+strings.NewReplacer("web", "fresh", "svc", "new").Replace(web)+static("local", address))
	s.eventually("the new one", func() bool { return s.healthOf("fresh", other) == "HEALTHY" })
	s.eventually("the other to be forgotten", func() bool {
		rows := s.upstreamRows("upstream")
		return rows[1].Resources == 1 && rows[1].Synced == 1
	})
	if _, text := s.get("/metrics"); !strings.Contains(text, "\nhdsd_source_problems 0\n") {
		t.Error("there are problems")
	}
}

// TestExamineWithoutServers covers that no cluster which the server may have counts as missing.
func TestExamineWithoutServers(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.says([]types.Resource{})
	m.come()
	dir := t.TempDir()
	text := quick + m.source("upstream", "600s", "") + "policies: [{cluster_name_glob: \"x-*\", redundancy: 2}]\n"
	found := validate.Examine(t.Context(), configuration(t, dir, text, `
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
`), nil)
	if len(found.Problems) > 0 || found.Clusters != 1 || len(found.Unread) != 1 || found.Unread[0] != "upstream" || m.streams.Load() > 0 {
		t.Errorf("found %+v, %d streams", found, m.streams.Load())
	}
	if c, problems := config.Load(filepath.Join(dir, "hdsd.yaml")); c == nil {
		t.Error(problems)
	}
}
