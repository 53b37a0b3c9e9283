package replicas

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hdsd/bootstrap"
	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/etcd"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// checks is a checker as /v1/checkers shows it.
type checks struct {
	ID, Replica       string
	Connected         bool
	AssignedEndpoints int
	PlanDigest        string
}

// TestEnvoysGoToAnotherReplica covers real Envoys that check. The replica that one is connected to is killed: the Envoy
// connects to another one, and checks the same endpoints there. No health changes.
func TestEnvoysGoToAnotherReplica(t *testing.T) {
	t.Parallel()
	ups := fleet.Upstreams(t, 6, upstream.Options{})
	addresses := fleet.Addresses(ups)
	l := &lab{t: t, etcd: etcd.StartCluster(t, 1, quickEtcd...)}
	for i := range 3 {
		l.replicas = append(l.replicas, newProcess(t, fmt.Sprintf("hdsd-%d", i+1), fmt.Sprintf("%q", l.etcd[0].URL), shortTTL,
			fleet.ClusterFile(fleet.StaticCluster("web", fleet.CheckHTTP, addresses))))
	}
	for _, r := range l.replicas {
		r.grace, r.probation = "30s", "0s" // an Envoy takes a while to connect on a busy machine; a new leader begins a probation anew
		r.start()
	}
	for i := range 4 {
		server := bootstrap.Server{Address: l.replicas[i%3].grpc, Replicas: []string{l.replicas[(i+1)%3].grpc, l.replicas[(i+2)%3].grpc}}
		id := fmt.Sprintf("checker-%d", i+1)
		text, err := bootstrap.Checker{
			Node: bootstrap.Node{ID: id, Admin: "127.0.0.1:0", Locality: health.Locality{Region: "eu", Zone: string(rune('a' + i%3))}}, Server: server,
		}.YAML()
		if err != nil {
			t.Fatal(err)
		}
		envoy.Start(t, "", id, text)
	}
	var before []checks
	look := func() []checks {
		var answer struct{ Checkers []checks }
		if err := l.leader().get("/v1/checkers", &answer); err != nil {
			return nil
		}
		return answer.Checkers
	}
	complete := func(all []checks) bool {
		seats := 0
		for _, c := range all {
			if c.Connected {
				seats += c.AssignedEndpoints
			}
		}
		return len(all) == 4 && seats == 3*len(addresses)
	}
	envoy.Eventually(t, patience, "all seats", func() bool {
		first := look()
		time.Sleep(time.Second)
		before = look()
		return complete(before) && slices.Equal(first, before)
	})
	histories := func() []transition { return same(l, "the history", (*process).history) }
	envoy.Eventually(t, patience, "all verdicts", func() bool { return len(histories()) == len(addresses) })
	for range 2 {
		r := l.replicas[slices.IndexFunc(l.replicas, func(r *process) bool { return r.id == before[0].Replica })]
		r.Kill()
		envoy.Eventually(t, patience, "all Envoys at other replicas", func() bool {
			now := look()
			return complete(now) && !slices.ContainsFunc(now, func(c checks) bool { return c.Replica == r.id })
		})
		now := look()
		for i := range before {
			if now[i].AssignedEndpoints != before[i].AssignedEndpoints || now[i].PlanDigest != before[i].PlanDigest {
				t.Errorf("%s had other endpoints: %+v, now %+v", before[i].ID, before[i], now[i])
			}
		}
		r.start()
		before = now
	}
	if all := histories(); len(all) != len(addresses) {
		t.Errorf("the health of an endpoint has changed: %+v", all)
	}
	if err := ups[0].Set(upstream.Status(503)); err != nil {
		t.Fatal(err)
	}
	envoy.Eventually(t, patience, "a verdict", func() bool { return len(histories()) == len(addresses)+1 })
}
