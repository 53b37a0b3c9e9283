package replicas

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/test/etcd"
)

// awayForLong keeps a replica away until the log does not have its next entry any more. It copies the database of
// another one.
func (l *lab) awayForLong() {
	l.t.Helper()
	var r *process
	l.fault("a replica away until a trim", func() {
		r = l.follower()
		l.behind(r)
		r.Kill()
		time.Sleep(either(500*time.Millisecond, 10*time.Second)) // of changes
		trim(l.t, l.etcd[0])
	}, func() {
		r.start()
		if !strings.Contains(r.Logs(), `"event":"database_copied"`) {
			l.t.Errorf("%s has not copied the database", r.id)
		}
	})
}

// trim removes all entries of the log but the last one, as a leader does after many entries.
func trim(t *testing.T, server *etcd.Server) {
	t.Helper()
	conn, err := grpc.NewClient(server.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kv := pb.NewKVClient(conn)
	log := &pb.RangeRequest{Key: []byte("/hdsd/log/"), RangeEnd: []byte("/hdsd/log0"), KeysOnly: true}
	found, err := kv.Range(ctx, log)
	if err != nil || len(found.GetKvs()) < 10 {
		t.Fatalf("the log: %v, %v", found, err)
	}
	removed, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: log.Key, RangeEnd: found.GetKvs()[len(found.GetKvs())-1].GetKey()})
	if err == nil {
		_, err = kv.Compact(ctx, &pb.CompactionRequest{Revision: removed.GetHeader().GetRevision()})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitSession waits until a process has the id that another one had.
func (l *lab) awaitSession(p *process) {
	l.t.Helper()
	p.until("to have the id", func() bool {
		return strings.Contains(p.Logs(), `"event":"etcd_works","task":"register"`)
	})
}

// TestTwoProcessesHaveOneID covers a second process with the id of a replica, first beside it, then in its place, then
// with the replica beside it.
func TestTwoProcessesHaveOneID(t *testing.T) {
	t.Parallel()
	const ttl = "4s" // no session ends because the machine is busy
	l := newLab(t, etcd.StartCluster(t, 1, quickEtcd...), ttl)
	original := l.replicas[0] // those with the smallest id call the others
	second := newProcess(t, original.id, fmt.Sprintf("%q", l.etcd[0].URL), ttl, l.judge.world.File())
	isRefused := func(p *process) {
		p.until("to say that another process has its id", func() bool {
			_, text := p.ask("/v1/status")
			return strings.Contains(text, "another process has the id")
		})
	}
	l.fault("a second process with an id", func() {
		second.start()
		isRefused(second)
	}, func() {})
	l.join(second)
	l.settle()
	l.fault("the first one ends", func() {
		l.behind(original)
		original.Kill()
		l.awaitSession(second)
	}, func() { original.start(); isRefused(original) })
	l.fault("the second one ends", func() { l.planes = l.planes[:len(l.replicas)]; second.Kill() }, func() { l.awaitSession(original) })
	for _, r := range append([]*process{second}, l.replicas...) {
		text := strings.Join(append(r.logs, r.Logs()), "")
		if n := strings.Count(text, "a newer connection of the same replica replaces"); n > 4 { // one each time the id changes hands
			t.Errorf("%s: two processes with one id replace the links of each other %d times", r.id, n)
		}
	}
	l.finish()
}
