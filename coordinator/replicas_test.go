package coordinator_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/etcd"
)

// fleet is several replicas on one etcd.
type fleet struct {
	t        *testing.T
	etcd     string
	clusters string
	sources  string            // more of them
	variants map[string]string // by replica: other clusters, or none
	relays   map[string]*management
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
	clusters, own := f.variants[id]
	if !own {
		clusters = f.clusters
	}
	f.sites[id] = newSite(f.t, f.dirs[id], f.configuration(id), clusters)
	return f.sites[id]
}

func (f *fleet) configuration(id string) string {
	text := quick + f.sources
	if m := f.relays[id]; m != nil {
		text = relaying(m, "")
	}
	return fmt.Sprintf("node_id: %s\nreplication: {etcd: {endpoints: [%q]}, peer: {address: \"127.0.0.1:0\"}, session_ttl: 1s}\n", id, f.etcd) + text
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

// cutEtcd is a way to an etcd that the test cuts.
type cutEtcd struct {
	listener net.Listener
	mu       sync.Mutex
	isCut    bool       // guarded by mu
	open     []net.Conn // guarded by mu
}

// newCutEtcd forwards connections to an etcd until the test ends.
func newCutEtcd(t *testing.T, to string) *cutEtcd {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutEtcd{listener: listener}
	var forwards sync.WaitGroup
	forwards.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil || !c.keep(near, far) {
				near.Close()
				continue
			}
			forwards.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			forwards.Go(func() { _, _ = io.Copy(near, far); near.Close() })
		}
	})
	t.Cleanup(func() { c.set(true); listener.Close(); forwards.Wait() })
	return c
}

func (c *cutEtcd) keep(both ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, both...)
	if c.isCut {
		c.closeAll()
	}
	return !c.isCut
}

func (c *cutEtcd) set(isCut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut = isCut; isCut {
		c.closeAll()
	}
}

func (c *cutEtcd) closeAll() {
	for _, conn := range c.open {
		conn.Close()
	}
	c.open = nil
}

// TestReplicaEndsBehindTheLog covers a running replica that is away from etcd until the log does not have its next entry
// any more. It ends, and copies the database of another replica when it starts again.
func TestReplicaEndsBehindTheLog(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	server := etcd.Start(t)
	f := newFleet(t, server, static("web", address), "r1")
	f.sites["r1"].ready()
	f.sites["r1"].checker("c1")
	cut := newCutEtcd(t, server.Address)
	f.etcd = "http://" + cut.listener.Addr().String()
	f.dirs["r2"] = t.TempDir()
	behind := f.start("r2")
	behind.ready()
	f.eventually("web", address, "HEALTHY")

	cut.set(true)
	_, err := hdsdv1.NewControlClient(behind.dial()).Freeze(t.Context(), &hdsdv1.FreezeRequest{Author: "me", Reason: "a test"})
	if text := fmt.Sprint(err); !strings.Contains(text, "may still be carried out") && !strings.Contains(text, "is not carried out") {
		t.Errorf("an order without etcd ends with %v", err)
	}
	position := func() float64 { return f.sites["r1"].scrape().sum("hdsd_replica_position") }
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusOK, http.StatusServiceUnavailable} {
		before := position()
		status.Store(int32(code))
		f.sites["r1"].eventually("another entry", func() bool { return position() > before })
	}
	f.sites["r1"].eventually("the log without its beginning", func() bool { return trim(t, server) > uint64(behind.scrape().sum("hdsd_replica_position"))+1 })
	cut.set(false)
	select {
	case err := <-behind.ended:
		if err == nil || !strings.Contains(err.Error(), "copies the database of another one when it starts again") {
			t.Fatalf("the replica ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the replica does not end")
	}
	delete(f.sites, "r2")
	f.start("r2").ready()
	f.eventually("web", address, "UNHEALTHY")
	f.same("/v1/transitions?cluster=web")
}

// trim removes all entries of the log but the last one, and returns its sequence.
func trim(t *testing.T, server *etcd.Server) uint64 {
	t.Helper()
	conn, err := grpc.NewClient(server.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	kv := etcdserverpb.NewKVClient(conn)
	log := &etcdserverpb.RangeRequest{Key: []byte("/hdsd/log/"), RangeEnd: []byte("/hdsd/log0"), KeysOnly: true}
	found, err := kv.Range(t.Context(), log)
	if err != nil || len(found.GetKvs()) == 0 {
		t.Fatalf("the log: %v, %v", found, err)
	}
	last := found.GetKvs()[len(found.GetKvs())-1].GetKey()
	removed, err := kv.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: log.Key, RangeEnd: last})
	if err == nil {
		_, err = kv.Compact(t.Context(), &etcdserverpb.CompactionRequest{Revision: removed.GetHeader().GetRevision()})
	}
	if err != nil && !strings.Contains(err.Error(), "compacted") {
		t.Fatal(err)
	}
	sequence, err := strconv.ParseUint(strings.TrimPrefix(string(last), "/hdsd/log/"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}
