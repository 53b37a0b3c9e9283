package coordinator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// incidentsOf is what REST lists.
func (s *site) incidentsOf(parameters string) (all []struct {
	ID, Start, End, Cause, Summary string
	Clusters, Zones                []string
	Endpoints, Down                int
	First                          struct{ Cluster, Address, From, To string }
}) {
	s.t.Helper()
	code, text := s.get("/v1/incidents?" + parameters)
	answer := struct{ Incidents any }{&all}
	if err := json.Unmarshal([]byte(text), &answer); code != http.StatusOK || err != nil {
		s.t.Fatalf("%d %s: %v", code, text, err)
	}
	return all
}

// TestIncidents covers an outage: its incident keeps its id after its end and after a restart, and ends when
// the cluster is removed. A forced outage counts as one of an operator.
func TestIncidents(t *testing.T) {
	t.Parallel()
	address, upstreamStatus := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address)+static("idle", "127.0.0.1:1"))
	s.ready()
	s.checker("c1")
	s.eventually("health", func() bool { return s.healthOf("web", address) == "HEALTHY" })
	upstreamStatus.Store(http.StatusServiceUnavailable)
	s.eventually("an incident", func() bool { return len(s.incidentsOf("cluster=web&open=true")) == 1 })
	open := s.incidentsOf("cluster=web")[0]
	if open.End != "" || open.Cause != "ENDPOINT" || open.Endpoints != 1 || open.Down != 1 || open.First.Address != address || open.First.To != "UNHEALTHY" ||
		len(open.Clusters) != 1 || !strings.Contains(open.Summary, "went down, 1 still is") {
		t.Errorf("while it goes on: %+v", open)
	}
	upstreamStatus.Store(http.StatusOK)
	s.eventually("its end", func() bool { return len(s.incidentsOf("cluster=web&open=false")) == 1 })
	over := s.incidentsOf("cluster=web&startTime=" + open.Start)[0]
	if over.ID != open.ID || over.End == "" || over.Down != 0 || !strings.Contains(over.Summary, "went down; over after") {
		t.Errorf("when it is over: %+v", over)
	}
	if _, err := hdsdv1.NewControlClient(s.dial()).SetOverride(t.Context(), &hdsdv1.SetOverrideRequest{
		Cluster: "web", Health: corev3.HealthStatus_UNHEALTHY, Author: "ann", Reason: "repair",
	}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the operator's", func() bool {
		all := s.incidentsOf("cluster=web")
		return len(all) == 1 && all[0].ID == open.ID && all[0].Down == 1 // within a minute of the other
	})
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s = newSite(t, s.dir, quick, static("web", address)+static("idle", "127.0.0.1:1"))
	s.ready()
	if again := s.incidentsOf("id=" + open.ID); len(again) != 1 || again[0].Start != open.Start || again[0].Down != 1 {
		t.Errorf("after a restart: %+v", again)
	}
	for path, want := range map[string]int{"cluster=nowhere": http.StatusNotFound, "pageToken=x": http.StatusBadRequest, "startTime=2026-01-02T00:00:00Z&endTime=2026-01-01T00:00:00Z": http.StatusBadRequest} {
		if code, text := s.get("/v1/incidents?" + path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// TestOperatorIncident covers an incident that begins with an override.
func TestOperatorIncident(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address))
	s.ready()
	s.checker("c1")
	s.eventually("health", func() bool { return s.healthOf("web", address) == "HEALTHY" })
	if _, err := hdsdv1.NewControlClient(s.dial()).SetOverride(t.Context(), &hdsdv1.SetOverrideRequest{
		Cluster: "web", Health: corev3.HealthStatus_UNHEALTHY, Author: "ann", Reason: "repair",
	}); err != nil {
		t.Fatal(err)
	}
	s.eventually("an incident", func() bool { return len(s.incidentsOf("")) == 1 })
	if i := s.incidentsOf("")[0]; i.Cause != "OPERATOR" {
		t.Errorf("%+v", i)
	}
}
