package coordinator_test

import (
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/etcd"
)

// TestReplicasHaveDifferentClusters covers that each replica publishes what its own files have, with the health of
// all endpoints, whoever leads.
func TestReplicasHaveDifferentClusters(t *testing.T) {
	t.Parallel()
	common, status := upstream(t)
	alone, aloneStatus := upstream(t)
	extra, extraStatus := upstream(t)
	f := newFleet(t, etcd.Start(t), static("web", common))
	f.variants = map[string]string{"r2": static("web", common, alone), "r3": static("web", common) + static("extra", extra)}
	ids := []string{"r1", "r2", "r3"}
	for _, id := range ids {
		f.dirs[id] = t.TempDir()
		f.start(id)
	}
	planes := map[string]*plane{}
	connect := func(id string) {
		f.sites[id].checker("checker-" + id)
		planes[id] = f.sites[id].plane()
	}
	for _, id := range ids {
		connect(id)
	}
	wants := func(web, webAlone, extra string) {
		t.Helper()
		for id, s := range f.sites {
			want := map[string]string{"r1": web + " ", "r2": web + " " + webAlone + " ", "r3": web + " "}[id]
			s.eventually("the health at the data planes of "+id, func() bool { return strings.HasPrefix(planes[id].told("web"), want) })
		}
		if s := f.sites["r3"]; s != nil {
			s.eventually("the health of the cluster of one replica", func() bool { return strings.HasPrefix(planes["r3"].told("extra"), extra+" ") })
		}
	}
	wants("HEALTHY", "HEALTHY", "HEALTHY")
	for _, down := range []int32{http.StatusServiceUnavailable, http.StatusOK, http.StatusServiceUnavailable} {
		aloneStatus.Store(down)
		extraStatus.Store(down)
		want := "HEALTHY"
		if down != http.StatusOK {
			want = "UNHEALTHY"
		}
		wants("HEALTHY", want, want)
		leader := f.leader()
		f.stop(leader)
		f.start(leader).ready()
		connect(leader)
		wants("HEALTHY", want, want)
	}
	status.Store(http.StatusServiceUnavailable)
	wants("UNHEALTHY", "UNHEALTHY", "UNHEALTHY")
	for _, path := range []string{"/v1/transitions?cluster=web", "/v1/transitions?cluster=extra"} {
		f.same(path)
	}
	f.eventually("web", alone, "UNHEALTHY") // any replica answers for all
	f.eventually("extra", extra, "UNHEALTHY")
	if _, text := f.sites["r1"].get("/v1/transitions?cluster=extra"); strings.Count(text, `"to":"UNHEALTHY"`) != 2 {
		t.Errorf("the history of an endpoint that another replica has: %s", text)
	}
}

// TestReplicasRelay covers replicas whose data planes get different clusters from their control planes. When a replica
// starts again, nothing leaves before its data planes are back.
func TestReplicasRelay(t *testing.T) {
	t.Parallel()
	common, _ := upstream(t)
	alone, aloneStatus := upstream(t)
	f := newFleet(t, etcd.Start(t), "")
	f.variants, f.relays = map[string]string{}, map[string]*management{}
	clients := map[string]*client{}
	ids := []string{"r1", "r2", "r3"}
	for _, id := range ids {
		m := newManagement(t)
		m.come()
		addresses := []string{common}
		if id == "r2" {
			addresses = append(addresses, alone)
		}
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, addresses...))
		f.relays[id], f.variants[id], f.dirs[id] = m, "", t.TempDir()
		f.start(id).checker("checker-" + id)
	}
	for _, id := range ids {
		f.sites[id].ready()
		clients[id] = f.sites[id].client(true, "edge-"+id, "web")
	}
	wants := func(health string) {
		t.Helper()
		for _, id := range []string{"r1", "r3"} {
			f.sites[id].eventually("health from the relay of "+id, func() bool { return healthAt(clients[id]) == "HEALTHY" })
		}
		f.sites["r2"].eventually("health from the relay of r2", func() bool { return healthAt(clients["r2"]) == "HEALTHY "+health })
	}
	wants("HEALTHY")
	aloneStatus.Store(http.StatusServiceUnavailable)
	wants("UNHEALTHY")
	restart := func(id string) {
		f.stop(id)
		f.start(id).ready()
		f.sites[id].checker("checker-" + id)
		clients[id] = f.sites[id].client(true, "edge-"+id, "web")
		wants("UNHEALTHY")
	}
	restart(f.leader())
	if f.leader() == "r2" {
		restart("r2")
	}
	restart("r2") // which follows
	f.same("/v1/transitions?cluster=web")
	if _, text := f.sites["r3"].get("/v1/transitions?cluster=web"); strings.Contains(text, "in no source any more") {
		t.Errorf("a restart has ended the health of an endpoint: %s", text)
	}
	aloneStatus.Store(http.StatusOK)
	wants("HEALTHY")
}

// TestNewReplicasServeTheLog covers that a replica reads the log before it serves data planes: they get no health that the
// log has overtaken.
func TestNewReplicasServeTheLog(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	status.Store(http.StatusServiceUnavailable)
	f := newFleet(t, etcd.Start(t), static("web", address), "r1")
	f.sites["r1"].ready()
	f.sites["r1"].checker("c1")
	f.eventually("web", address, "UNHEALTHY")
	for range 5 {
		f.dirs["r2"] = t.TempDir()
		p := f.start("r2").plane()
		first := func() (health string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if groups := p.assignments["web"].GetEndpoints(); len(groups) > 0 {
				health = groups[0].GetLbEndpoints()[0].GetHealthStatus().String()
			}
			return health
		}
		f.sites["r2"].eventually("health at the data plane", func() bool { return first() != "" })
		if got := first(); got != "UNHEALTHY" {
			t.Errorf("a data plane gets %s at first", got)
		}
		f.stop("r2")
	}
}

// healthAt returns the health of all endpoints of a cluster at a data plane.
func healthAt(c *client) string {
	var all []string
	for _, group := range c.assignment("web").GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			all = append(all, e.GetHealthStatus().String())
		}
	}
	return strings.Join(all, " ")
}

// TestOverridesOfOneReplicasClusters covers orders about a cluster that one replica has alone, given to each replica: they
// take effect there, and each replica says so.
func TestOverridesOfOneReplicasClusters(t *testing.T) {
	t.Parallel()
	common, _ := upstream(t)
	extra, _ := upstream(t)
	f := newFleet(t, etcd.Start(t), static("web", common))
	f.variants = map[string]string{"r3": static("web", common) + static("extra", extra)}
	ids := []string{"r1", "r2", "r3"}
	for _, id := range ids {
		f.dirs[id] = t.TempDir()
		f.start(id).checker("checker-" + id)
	}
	p := f.sites["r3"].plane()
	told := func(health string) {
		t.Helper()
		f.sites["r3"].eventually(health+" at the data plane", func() bool { return strings.HasPrefix(p.told("extra"), health+" ") })
	}
	told("HEALTHY")
	f.eventually("extra", extra, "HEALTHY")
	for _, id := range ids {
		control := hdsdv1.NewControlClient(f.sites[id].dial())
		order := &hdsdv1.SetOverrideRequest{Cluster: "extra", Health: corev3.HealthStatus_DRAINING, Reason: "a test by " + id, Author: "me"}
		preview, err := control.PreviewOverride(t.Context(), order)
		if err != nil || preview.GetOverride().GetEndpoints() != 1 {
			t.Errorf("%s: PreviewOverride: %v, %v", id, preview, err)
		}
		answer, err := control.SetOverride(t.Context(), order)
		if err != nil || answer.GetOverride().GetEndpoints() != 1 || answer.GetOverride().GetReason() != order.GetReason() {
			t.Errorf("%s: SetOverride: %v, %v", id, answer, err)
		}
		told("DRAINING")
		f.eventually("extra", extra, "DRAINING")
		for other, s := range f.sites {
			s.eventually("the override on "+other, func() bool {
				_, text := s.get("/v1/overrides")
				return strings.Contains(text, order.GetReason()) && strings.Contains(text, `"endpoints":1`)
			})
		}
		ended, err := control.ClearOverrides(t.Context(), &hdsdv1.ClearOverridesRequest{Cluster: "extra", Author: "me"})
		if err != nil || len(ended.GetEnded()) != 1 {
			t.Errorf("%s: ClearOverrides: %v, %v", id, ended, err)
		}
		told("HEALTHY")
	}
	f.same("/v1/audit")
}
