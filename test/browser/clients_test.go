package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// tell asks hdsd to change something, as an operator does.
func tell(t *testing.T, c *fleet.Coordinator, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}

// TestWhatOperatorsSetIsShown while it is in force, and no longer.
func TestWhatOperatorsSetIsShown(t *testing.T) {
	c, server := site(t)
	b := open(t, c.HTTP, "/#/clients")
	b.shows("Not frozen.", true)
	b.shows("No overrides are in force.", true)
	tell(t, c, http.MethodPost, "/v1/overrides", fmt.Sprintf(`{"cluster": "web", "address": %q, "health": "DRAINING", "reason": "new kernel", "author": "ann"}`, server.Addr()))
	for _, want := range []string{"web " + server.Addr(), "everywhere", "DRAINING", "it is cleared", "new kernel", "ann"} {
		b.shows(want, true)
	}
	tell(t, c, http.MethodPost, "/v1/freeze", `{"reason": "we move", "author": "bob", "publish": "HELD"}`)
	b.shows("we move (bob). Data planes get the health at the moment of the freeze.", true)
	tell(t, c, http.MethodDelete, "/v1/freeze", "")
	b.shows("Not frozen.", true)
	tell(t, c, http.MethodDelete, "/v1/overrides?cluster=web&address="+url.QueryEscape(server.Addr()), "")
	b.shows("new kernel", false)
	b.behaved()
}

// TestASourceIsShown with what hdsd holds of it, until that is accepted.
func TestASourceIsShown(t *testing.T) {
	file := func(endpoints int) string {
		addresses := make([]string, endpoints)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.0.0.%d:80", i+1)
		}
		return fleet.ClusterFile(fleet.StaticCluster("web", fleet.CheckHTTP, addresses))
	}
	c := fleet.Prepare(t, file(20), fleet.FastReports)
	at := filepath.Join(c.Dir, "hdsd.yaml")
	text, err := os.ReadFile(at)
	if err == nil {
		err = os.WriteFile(at, []byte(strings.Replace(string(text), "{name: local,", "{name: local, hold_shrinkage: {share: 0.5, for: 300s},", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	b := open(t, c.HTTP, "/#/clients")
	b.shows("local\t1\t20\tnothing", true)
	c.SetClusters(file(3))
	b.shows("1 cluster and 3 endpoints would be left", true)
	b.shows("hdsd source accept local", true)
	b.press("Accept what is held of local")
	b.fill("reason", "we shrink")
	b.press("Accept")
	b.shows("local\t1\t3\tnothing", true)
	b.behaved()
}

// TestABrokenSourceIsShown with its file, its line, and what is still in use; and no longer when it is
// repaired.
func TestABrokenSourceIsShown(t *testing.T) {
	good := fleet.ClusterFile(fleet.StaticCluster("web", fleet.CheckHTTP, []string{"10.0.0.1:80"}))
	c := fleet.Prepare(t, good, fleet.FastReports)
	c.Start()
	b := open(t, c.HTTP, "/#/clients")
	b.shows("local\t1\t1\tnothing", true)
	c.SetClusters(strings.Replace(good, "type: STATIC", "type: STATIK", 1))
	var list struct{ Sources []struct{ Problem string } }
	envoy.Eventually(t, fleet.Patience, "a problem", func() bool {
		return json.Unmarshal(fetched(t, "http://"+c.HTTP+"/v1/sources"), &list) == nil && len(list.Sources) == 1 && list.Sources[0].Problem != ""
	})
	problem := list.Sources[0].Problem
	if !strings.Contains(problem, "clusters.yaml:") || !strings.Contains(problem, "in use") {
		t.Errorf("the problem is %q", problem)
	}
	b.shows("BROKEN "+problem, true)
	b.behaved()
	c.SetClusters(good)
	b.shows("BROKEN", false)
}
