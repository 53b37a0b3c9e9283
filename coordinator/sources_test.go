package coordinator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// sourceJSON is a source in /v1/sources.
type sourceJSON struct {
	Name                string
	Clusters, Endpoints int
	Problem             string
	Held                *struct {
		Since, AcceptsAt    time.Time
		Clusters, Endpoints int
		Revision            string
	}
}

func (s *site) source(name string) (found sourceJSON) {
	s.t.Helper()
	_, text := s.get("/v1/sources")
	var answer struct{ Sources []sourceJSON }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	for _, one := range answer.Sources {
		if one.Name == name {
			found = one
		}
	}
	return found
}

// inUse describes a source, such as "10/20" or, if it is held, "10/20, 1/2 left".
func (s *site) inUse(name string) string {
	one := s.source(name)
	text := fmt.Sprintf("%d/%d", one.Clusters, one.Endpoints)
	if one.Held != nil {
		text += fmt.Sprintf(", %d/%d left", one.Held.Clusters, one.Held.Endpoints)
	}
	return text
}

func (s *site) wantInUse(name, want string) {
	s.t.Helper()
	s.eventually(name+" to be "+want, func() bool { return s.inUse(name) == want })
}

// saysMany has it say n clusters with two endpoints each.
func (m *management) saysMany(n int) {
	names, assignments := make([]string, n), make([]types.Resource, n)
	for i := range n {
		names[i] = fmt.Sprintf("c%d", i)
		assignments[i] = endpoints(names[i], noWord, fmt.Sprintf("127.0.0.1:%d", 2*i+1), fmt.Sprintf("127.0.0.1:%d", 2*i+2))
	}
	m.says(byEDS(names...), assignments...)
}

// TestShrinkageIsHeld covers a hold in each form of the protocol.
func TestShrinkageIsHeld(t *testing.T) {
	for _, form := range []string{"AGGREGATED_DELTA_GRPC", "AGGREGATED_GRPC"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			m := newManagement(t)
			m.saysMany(10)
			m.come()
			dir := t.TempDir()
			text := strings.Replace(quick+m.source("mesh", "600s", ", hold_shrinkage: {}"), "AGGREGATED_DELTA_GRPC", form, 1)
			s := newSite(t, dir, text, static("local", "127.0.0.1:1"))
			s.ready()
			s.wantInUse("mesh", "10/20")
			s.wantInUse("local", "1/1")

			m.saysMany(1)
			s.wantInUse("mesh", "10/20, 1/2 left")
			held := s.source("mesh").Held
			if d := held.AcceptsAt.Sub(held.Since); d != 5*time.Minute || held.Revision == "" || time.Since(held.Since) > time.Minute {
				t.Errorf("held %+v", held)
			}
			if code, text := s.get("/readyz"); code != http.StatusOK || !strings.Contains(text, "\nsource mesh: held since ") {
				t.Errorf("readyz is %d %q", code, text)
			}
			if found := s.scrape(); found.sum("hdsd_sources_held") != 1 || found.sum("hdsd_source_endpoints_held") != 18 {
				t.Errorf("%v sources, %v endpoints held", found.sum("hdsd_sources_held"), found.sum("hdsd_source_endpoints_held"))
			}
			if _, text := s.get("/v1/endpoints?cluster=c9"); !strings.Contains(text, "127.0.0.1:20") {
				t.Errorf("what is held is not in use: %s", text)
			}
			m.saysMany(10)
			s.wantInUse("mesh", "10/20")

			m.saysMany(1)
			s.wantInUse("mesh", "10/20, 1/2 left")
			held = s.source("mesh").Held
			if restart, err := s.Reload(configuration(t, dir, text, static("local", "127.0.0.1:1"))); err != nil || len(restart) > 0 {
				t.Fatal(restart, err)
			}
			if again := s.source("mesh"); again.Held == nil || *again.Held != *held {
				t.Errorf("after a reload %+v, before %+v", again, held)
			}
			s.stopped()
			s = newSite(t, dir, text, static("local", "127.0.0.1:1"))
			s.ready()
			s.eventually("the server to answer", func() bool { return s.upstreamRows("mesh")[0].Connected })
			if again := s.source("mesh"); again.Clusters != 10 || again.Endpoints != 20 || again.Held == nil || *again.Held != *held {
				t.Errorf("after a restart %+v, before %+v", again.Held, held)
			}
			accept := func(more string) string {
				return string(s.post("/v1/sources", `{"name":"mesh","reason":"moved","author":"ann"`+more+`}`))
			}
			if answer := accept(`,"heldRevision":"0"`); !strings.Contains(answer, "something else") {
				t.Errorf("what was not shown is accepted: %s", answer)
			}
			if answer := accept(`,"heldSince":"2020-01-01T00:00:00Z"`); !strings.Contains(answer, "something else") {
				t.Errorf("what was not shown is accepted: %s", answer)
			}
			since, _ := held.Since.MarshalText()
			accept(fmt.Sprintf(`,"heldRevision":%q,"heldSince":%q`, held.Revision, since))
			s.wantInUse("mesh", "1/2")
			if answer := accept(""); !strings.Contains(answer, "nothing to accept") {
				t.Errorf("nothing is accepted: %s", answer)
			}
			s.eventually("nine clusters to go", func() bool { return s.healthOf("c9", "127.0.0.1:20") == "" })
			if _, text := s.get("/v1/audit"); !strings.Contains(text, `"AcceptSource"`) {
				t.Errorf("the audit is %s", text)
			}
			if found := s.scrape(); found.sum("hdsd_sources_held") != 0 || found.sum("hdsd_source_endpoints_held") != 0 {
				t.Error("metrics say that something is held")
			}
		})
	}
}

// TestHoldEndsByItself covers the first answer after a start too, which hdsd compares with the stored
// clusters.
func TestHoldEndsByItself(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.saysMany(4)
	m.come()
	dir := t.TempDir()
	text := quick + m.source("mesh", "600s", ", hold_shrinkage: {for: 1s}")
	s := newSite(t, dir, text, static("local", "127.0.0.1:1"))
	s.ready()
	s.wantInUse("mesh", "4/8")
	s.stopped()
	m.saysMany(1)
	s = newSite(t, dir, text, static("local", "127.0.0.1:1"))
	s.eventually("a hold", func() bool { return s.inUse("mesh") == "4/8, 1/2 left" })
	s.wantInUse("mesh", "1/2")
}

// TestFileHoldsIfConfigured covers that a file does not hold by default.
func TestFileHoldsIfConfigured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held := strings.Replace(quick, "clusters.yaml}}}", "clusters.yaml}}, hold_shrinkage: {share: 0.2}}", 1)
	s := newSite(t, dir, held, static("web", "127.0.0.1:1", "127.0.0.1:2"))
	s.ready()
	reload := func(text string, addresses ...string) {
		t.Helper()
		if _, err := s.Reload(configuration(t, dir, text, static("web", addresses...))); err != nil {
			t.Fatal(err)
		}
	}
	reload(held, "127.0.0.1:2")
	s.wantInUse("local", "1/2, 1/1 left")
	reload(quick, "127.0.0.1:2")
	s.wantInUse("local", "1/1")
}

// TestAlternatingServerIsNotFollowed covers an endpoint whose check and whose neighbour alternate: it becomes
// healthy, and stays so.
func TestAlternatingServerIsNotFollowed(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	other, _ := upstream(t)
	m := newManagement(t)
	turn := 0
	alternate := func() {
		turn++
		clusters, assignment := byEDS("web", "calm"), endpoints("web", noWord, address, other)
		if turn%2 == 0 {
			clusters[0].(*clusterv3.Cluster).HealthChecks[0].GetHttpHealthCheck().Path = "/other"
			assignment = endpoints("web", noWord, address)
		}
		m.says(clusters, assignment, endpoints("calm", noWord, other))
	}
	alternate()
	m.come()
	s := newSite(t, t.TempDir(), quick+m.source("mesh", "600s", ""), static("local", other))
	s.ready()
	changing := func() bool { alternate(); return s.scrape().sum("hdsd_source_changes_delayed_total") > 0 }
	s.eventually("changes to wait", changing)
	s.checker("c1")
	s.eventually("the endpoint to be healthy", func() bool {
		alternate()
		return s.healthOf("web", address) == "HEALTHY" && s.healthOf("calm", other) == "HEALTHY"
	})
	for end := turn + 300; turn < end; {
		alternate()
		if is := s.healthOf("web", address); is != "HEALTHY" {
			t.Fatalf("it is %s after %d answers", is, turn)
		}
	}
	if n := s.scrape().sum("hdsd_source_changes_delayed_total"); n > 10 {
		t.Errorf("%v changes of %d answers are followed", n, turn)
	}
}

// TestBrokenFileNeedsAttention covers the problem, its place and the clusters in use, until the file is
// repaired. hdsd checks the last valid version. The test moves hdsd_sources_broken.
func TestBrokenFileNeedsAttention(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	address, _ := upstream(t)
	s := newSite(t, t.TempDir(), quick+"notify: [{name: oncall, webhook: {url: "+h.URL+"}, kinds: [SOURCE_BROKEN]}]\n", static("web", address))
	s.ready()
	s.checker("c1")
	s.eventually("a verdict", func() bool { return s.healthOf("web", address) == "HEALTHY" })
	path, good := filepath.Join(s.dir, "clusters.yaml"), static("web", address)
	misspelt := func(name string) string {
		return strings.ReplaceAll(static(name, address), "connect_timeout", "conect_timeout")
	}
	const field = ".conect_timeout: is not a field of envoy.config.cluster.v3.Cluster: did you mean connect_timeout?"
	for _, c := range []struct{ when, content, attention string }{
		{"a cluster with a broken field, beside another", misspelt("web") + static("b", address), path + ":6: web: resources[0]" + field + " (the last valid version of it stays in use)"},
		{"two of them, which were never valid", good + misspelt("c") + misspelt("d"), path + ":17: c: resources[1]" + field + " (it is not in use) (and 1 more)"},
		{"a file of which nothing can be read", misspelt("web"), path + ":6: web: resources[0]" + field + " (the last valid version of the source stays in use)"},
		{"a file that is not YAML", "[", path + ":2: is not valid YAML: "},
	} {
		before := strings.Join(s.needing("SOURCE_BROKEN"), "")
		move(t, s.dir, "clusters.yaml", "resources:\n"+c.content)
		s.eventually(c.when, func() bool { found := s.needing("SOURCE_BROKEN"); return len(found) == 1 && found[0] != before })
		if found := s.needing("SOURCE_BROKEN"); len(found) != 1 || !strings.HasPrefix(found[0], "source local: "+c.attention) {
			t.Errorf("%s: %q, want %s", c.when, found, c.attention)
		}
		if got := s.source("local").Problem; !strings.HasPrefix(got, c.attention) {
			t.Errorf("%s: the source has the problem %q", c.when, got)
		}
		_, text := s.get("/v1/clusters?cluster=web")
		if strings.Contains(text, `"reason"`) || strings.Contains(text, "conect_timeout") != strings.Contains(c.attention, "version of it") || !strings.Contains(text, `"checked":true`) {
			t.Errorf("%s: web is checked: %s", c.when, text)
		}
		if n := s.scrape().sum("hdsd_sources_broken"); n != 1 {
			t.Errorf("%s: hdsd_sources_broken is %v", c.when, n)
		}
		s.eventually("a notification", func() bool { return h.has("firing SOURCE_BROKEN") })
	}
	move(t, s.dir, "clusters.yaml", "resources:\n"+good)
	s.eventually("all is well again", func() bool { return len(s.needing("SOURCE_BROKEN")) == 0 && h.has("resolved SOURCE_BROKEN") })
	if s.source("local").Problem != "" || s.scrape().sum("hdsd_sources_broken") != 0 {
		t.Errorf("all is well again, and %+v", s.source("local"))
	}
}

// needing lists the texts of what needs attention of a kind.
func (s *site) needing(kind string) (texts []string) {
	s.t.Helper()
	answer, err := hdsdv1.NewQueryClient(s.dial()).GetStatus(s.t.Context(), &hdsdv1.GetStatusRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range answer.GetAttention() {
		if a.GetKind() == kind {
			texts = append(texts, a.GetText())
		}
	}
	return texts
}
