package coordinator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/etcd"
)

// fleet is several replicas on one etcd.
type fleet struct {
	t        *testing.T
	etcd     string
	clusters string
	dirs     map[string]string
	sites    map[string]*site
}

// newFleet starts replicas. All have the same clusters.
func newFleet(t *testing.T, server *etcd.Server, clusters string, ids ...string) *fleet {
	f := &fleet{t: t, etcd: server.URL, clusters: clusters, dirs: map[string]string{}, sites: map[string]*site{}}
	for _, id := range ids {
		f.dirs[id] = t.TempDir()
		f.start(id)
	}
	return f
}

// start starts a replica, or starts it again.
func (f *fleet) start(id string) *site {
	f.sites[id] = newSite(f.t, f.dirs[id], f.configuration(id), f.clusters)
	return f.sites[id]
}

func (f *fleet) configuration(id string) string {
	return fmt.Sprintf("node_id: %s\nreplication: {etcd: {endpoints: [%q]}, peer: {address: \"127.0.0.1:0\"}, session_ttl: 1s}\n", id, f.etcd) + quick
}

// stop stops a replica.
func (f *fleet) stop(id string) {
	f.t.Helper()
	s := f.sites[id]
	s.stop()
	if err := <-s.ended; err != nil {
		f.t.Errorf("%s: %v", id, err)
	}
	delete(f.sites, id)
}

// eventually waits until each replica says that an address has a health.
func (f *fleet) eventually(cluster, address, health string) {
	f.t.Helper()
	for id, s := range f.sites {
		s.eventually(fmt.Sprintf("%s to be %s on %s", address, health, id), func() bool { return s.healthOf(cluster, address) == health })
	}
}

// leader returns the replica that leads.
func (f *fleet) leader() (id string) {
	f.t.Helper()
	var any *site
	for _, any = range f.sites {
	}
	any.eventually("a leader", func() bool {
		for candidate, s := range f.sites {
			if _, text := s.get("/metrics"); strings.Contains(text, "hdsd_replica_leads 1") {
				id = candidate
			}
		}
		return id != ""
	})
	return id
}

// TestReplicasDecideAsOne covers three replicas, each with a checker: all publish the same, take orders, and go on
// without their leader.
func TestReplicasDecideAsOne(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	ids := []string{"r1", "r2", "r3"}
	f := newFleet(t, etcd.Start(t), static("web", address), ids...)
	for _, id := range ids {
		f.sites[id].ready()
		f.sites[id].checker("checker-" + id)
	}
	f.eventually("web", address, "HEALTHY")
	status.Store(http.StatusServiceUnavailable)
	f.eventually("web", address, "UNHEALTHY")

	leader := f.leader()
	follower := ids[(slices.Index(ids, leader)+1)%3]
	control := hdsdv1.NewControlClient(f.sites[follower].dial())
	answer, err := control.SetOverride(t.Context(), &hdsdv1.SetOverrideRequest{Cluster: "web", Health: corev3.HealthStatus_HEALTHY, Reason: "a test", Author: "me"})
	if err != nil || answer.GetOverride().GetEndpoints() != 1 {
		t.Fatalf("SetOverride: %v, %v", answer, err)
	}
	f.eventually("web", address, "HEALTHY")

	f.stop(leader)
	f.eventually("web", address, "HEALTHY")
	if _, err := control.ClearOverrides(t.Context(), &hdsdv1.ClearOverridesRequest{Cluster: "web", Author: "me"}); err != nil {
		t.Errorf("ClearOverrides: %v", err)
	}
	f.eventually("web", address, "UNHEALTHY")
	status.Store(http.StatusOK)
	f.eventually("web", address, "HEALTHY")
	f.sites[follower].eventually("a lost replica", func() bool {
		_, text := f.sites[follower].get("/v1/status")
		return strings.Contains(text, "REPLICA_LOST")
	})
	f.start(leader).ready()
	f.eventually("web", address, "HEALTHY")
	for id, s := range f.sites {
		s.eventually("all checkers on "+id, func() bool {
			_, text := s.get("/v1/checkers")
			return strings.Count(text, `"assignedEndpoints":1`) == 2 && strings.Count(text, `"specifier":"SYNCED"`) == 2 && strings.Count(text, `"replica":"r`) == 2
		})
		found := s.scrape()
		for metric, want := range map[string]float64{
			"hdsd_replica_links": 2, "hdsd_replica_etcd_connected": 1, "hdsd_replica_epoch": f.sites[follower].scrape().sum("hdsd_replica_epoch"),
		} {
			if got := found.sum(metric); got != want {
				t.Errorf("%s: %s is %v, want %v", id, metric, got, want)
			}
		}
		for _, metric := range []string{"hdsd_replica_position", "hdsd_replica_messages_total", "hdsd_replica_message_bytes_total"} {
			if found.sum(metric) == 0 {
				t.Errorf("%s: %s is 0", id, metric)
			}
		}
		_, text := s.get("/v1/replicas")
		if strings.Count(text, `"connected":true`) != 3 || strings.Count(text, `"leader":true`) != 1 || strings.Count(text, `"self":true`) != 1 {
			t.Errorf("%s: %s", id, text)
		}
	}
	for _, path := range []string{"/v1/transitions?cluster=web", "/v1/audit", "/v1/events?kind=CHECKER", "/v1/events?kind=OVERRIDE"} {
		f.same(path)
	}
	if _, text := f.sites[leader].get("/v1/audit"); strings.Count(text, `"SetOverride"`) != 1 || strings.Count(text, `"ClearOverrides"`) != 1 || strings.Count(text, `"127.0.0.1:`) < 2 {
		t.Errorf("the audit: %s", text)
	}
}

// same waits until all replicas give the same answer.
func (f *fleet) same(path string) {
	f.t.Helper()
	var answers map[string]string
	defer func() {
		if f.t.Failed() {
			f.t.Log(answers)
		}
	}()
	for _, s := range f.sites {
		s.eventually("the same answer to "+path, func() bool {
			answers = map[string]string{}
			for _, other := range f.sites {
				_, text := other.get(path)
				answers[text] = text
			}
			return len(answers) == 1
		})
		return
	}
}

// TestOneBecomesThree covers a coordinator alone that becomes the first of three replicas: the others take its history
// over, also under another etcd after it was alone again.
func TestOneBecomesThree(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	status.Store(http.StatusServiceUnavailable)
	alone := newSite(t, t.TempDir(), quick, static("web", address))
	alone.checker("c1")
	alone.eventually("an unhealthy endpoint", func() bool { return alone.healthOf("web", address) == "UNHEALTHY" })
	transitions := func(s *site) string { _, text := s.get("/v1/transitions?cluster=web"); return text }
	alone.eventually("history", func() bool { return strings.Contains(transitions(alone), `"UNHEALTHY"`) })
	recorded := transitions(alone)
	alone.stop()
	<-alone.ended

	f := newFleet(t, etcd.Start(t), static("web", address))
	for _, id := range []string{"r1", "r2", "r3"} {
		f.dirs[id] = t.TempDir()
	}
	f.dirs["r1"] = alone.dir
	for _, id := range []string{"r1", "r2", "r3"} {
		f.start(id).ready()
		if got := f.sites[id].healthOf("web", address); got != "UNHEALTHY" {
			t.Errorf("%s says %q before any checker", id, got)
		}
		if got := transitions(f.sites[id]); got != recorded {
			t.Errorf("%s has the history\n%s, want\n%s", id, got, recorded)
		}
	}
	f.sites["r2"].checker("c1")
	status.Store(http.StatusOK)
	f.eventually("web", address, "HEALTHY")
	for id := range f.dirs {
		f.stop(id)
	}

	// Alone again, with what the replicas had.
	again := newSite(t, f.dirs["r3"], quick, static("web", address))
	again.ready()
	if got := again.healthOf("web", address); got != "HEALTHY" {
		t.Errorf("alone again, it says %q", got)
	}
	again.checker("c1")
	status.Store(http.StatusServiceUnavailable)
	again.eventually("an unhealthy endpoint", func() bool { return again.healthOf("web", address) == "UNHEALTHY" })
	again.stop()
	<-again.ended

	// Its history is not that of the log any more, so the log does not take it.
	apart := f.start("r3")
	apart.eventually("a refusal", func() bool {
		_, text := apart.get("/readyz")
		return strings.Contains(text, "has a history of its own")
	})
	if got := apart.healthOf("web", address); got != "UNHEALTHY" {
		t.Errorf("a replica without the log says %q", got)
	}
}
