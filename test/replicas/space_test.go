package replicas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/test/etcd"
)

// TestEtcdIsFull covers an etcd that refuses all writes: under a leader, then while the leader is killed.
func TestEtcdIsFull(t *testing.T) {
	t.Parallel()
	servers := etcd.StartCluster(t, 1, append([]string{"--quota-backend-bytes", fmt.Sprint(8 << 20)}, quickEtcd...)...)
	l := newLab(t, servers, shortTTL)
	others := openSpace(t, servers[0])
	full := func() {
		others.fill()
		leader := l.leader()
		for _, r := range l.replicas {
			l.behind(r) // what the log has is published late
		}
		for _, r := range l.replicas { // attention has the troubles of each
			l.tells(r, "etcd does not serve this replica: committing entry")
			l.tells(r, "compact and defragment it")
		}
		if l.leader() != leader {
			t.Error("another replica leads")
		}
	}
	l.fault("etcd full", func() { full(); time.Sleep(either(time.Second, 10*time.Second)) }, others.empty)
	var r *process
	l.fault("etcd full, kill -9 of the leader", func() {
		full()
		r = l.leader()
		r.Kill()
		r.launch()
		l.tells(r, "opening a session: etcd has no space")
	}, func() { others.empty(); r.ready() })
	l.finish()
}

// space is what others have in an etcd.
type space struct {
	t           *testing.T
	kv          pb.KVClient
	maintenance pb.MaintenanceClient
}

func openSpace(t *testing.T, server *etcd.Server) *space {
	conn, err := grpc.NewClient(server.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &space{t, pb.NewKVClient(conn), pb.NewMaintenanceClient(conn)}
}

// fill writes until etcd refuses.
func (s *space) fill() {
	s.t.Helper()
	value := bytes.Repeat([]byte("x"), 200<<10)
	for i := range 1000 {
		_, err := s.kv.Put(s.t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "/others/%d", i), Value: value})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Fatal("etcd does not become full")
}

// empty does what an operator does to an etcd that is full.
func (s *space) empty() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	removed, err := s.kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte("/others/"), RangeEnd: []byte("/others0")})
	if err == nil {
		_, err = s.kv.Compact(ctx, &pb.CompactionRequest{Revision: removed.GetHeader().GetRevision(), Physical: true})
	}
	if err == nil {
		_, err = s.maintenance.Defragment(ctx, &pb.DefragmentRequest{})
	}
	if err == nil {
		disarm := &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: removed.GetHeader().GetMemberId(), Alarm: pb.AlarmType_NOSPACE}
		_, err = s.maintenance.Alarm(ctx, disarm)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
