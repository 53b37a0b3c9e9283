package etcd_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	real "hdsd/internal/demo/envoy"
	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// raw connects to a server as an operator.
func raw(t testing.TB, s *server.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// write commits entries in the background, and campaigns again whenever it has to.
func write(t *testing.T, log *etcd.Log, from, to uint64) (wait func()) {
	ctx, done := limited(t), make(chan error, 1)
	go func() { done <- writes(ctx, log, from, to) }()
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func writes(ctx context.Context, log *etcd.Log, from, to uint64) error {
	epoch, err := log.Campaign(ctx)
	for sequence := from; err == nil && sequence <= to; {
		err = log.Commit(ctx, epoch, sequence, payload(sequence))
		if err == nil {
			sequence++
		} else if errors.Is(err, etcd.ErrFenced) {
			epoch, err = log.Campaign(ctx)
		}
	}
	return err
}

func TestKill9OfEtcd(t *testing.T) {
	s := server.Start(t)
	log := join(t, open(t, "a", nil, s), "", 0)
	r := follow(t, join(t, open(t, "b", nil, s), "", 0), 0)
	wait := write(t, log, 1, 600)
	for _, head := range []uint64{100, 200, 300} {
		until(t, r.get, func(s state) bool { return s.head() >= head })
		s.Kill()
		s.Restart()
	}
	wait()
	r.reads(t, 0, 600)
}

// TestMembersOfEtcdHang stops each member of a cluster in turn, as a machine that hangs, and kills
// it. Whatever a replica did there, it goes on elsewhere.
func TestMembersOfEtcdHang(t *testing.T) {
	cluster := server.StartCluster(t, 3, "--unsafe-no-fsync")
	a, b := open(t, "a", nil, cluster...), open(t, "b", nil, cluster...)
	log := join(t, a, "", 0)
	r := follow(t, join(t, b, "", 0), 0)
	const each = 50
	head := uint64(0)
	for _, member := range cluster {
		for _, fault := range []struct{ begin, end func() }{
			{func() { _ = member.Pause() }, func() { _ = member.Resume() }},
			{member.Kill, func() { member.Restart() }},
		} {
			fault.begin()
			write(t, log, head+1, head+each)()
			head += each
			r.reads(t, 0, head)
			fault.end()
		}
	}
}

// TestNoSpace fills etcd. Commits fail and say so, the log can be trimmed, and commits go on after
// an operator has done what the error says.
func TestNoSpace(t *testing.T) {
	s := server.Start(t, "--quota-backend-bytes=16777216")
	a := open(t, "a", nil, s)
	log := join(t, a, "", 0)
	epoch := campaign(t, log)
	large := make([]byte, etcd.MaxPayload)
	sequence, err := uint64(0), error(nil)
	for err == nil {
		sequence++
		err = log.Commit(limited(t), epoch, sequence, large)
	}
	if !errors.Is(err, etcd.ErrNoSpace) || sequence < 3 {
		t.Fatalf("entry %d: %v", sequence, err)
	}
	says(t, a, etcd.TaskCommit, etcd.ErrNoSpace)
	b := open(t, "b", nil, s)
	says(t, b, etcd.TaskSession, etcd.ErrNoSpace)
	if err := log.Trim(limited(t), epoch, sequence-2); err != nil {
		t.Fatal(err)
	}
	operator := pb.NewMaintenanceClient(raw(t, s))
	// etcd compacts in the background; a defragmentation that comes too early frees nothing.
	if !real.Await(t.Context(), patience, func() bool {
		must[*pb.DefragmentResponse](t)(operator.Defragment(limited(t), &pb.DefragmentRequest{}))
		return must[*pb.StatusResponse](t)(operator.Status(limited(t), &pb.StatusRequest{})).DbSize < 8<<20
	}) {
		t.Fatal("etcd does not get smaller")
	}
	for _, alarm := range must[*pb.AlarmResponse](t)(operator.Alarm(limited(t), &pb.AlarmRequest{Action: pb.AlarmRequest_GET})).Alarms {
		disarm := &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: alarm.MemberID, Alarm: alarm.Alarm}
		must[*pb.AlarmResponse](t)(operator.Alarm(limited(t), disarm))
	}
	connected(t, b)
	// The entry that failed may be there already.
	if err := log.Commit(limited(t), epoch, sequence, large); err != nil {
		t.Fatal(err)
	}
	connected(t, a)
	if head, err := log.Head(limited(t)); head != sequence || err != nil {
		t.Errorf("head is %d instead of %d, %v", head, sequence, err)
	}
}

func TestEtcdIsWiped(t *testing.T) {
	s := server.Start(t)
	a, b := open(t, "a", nil, s), open(t, "b", nil, s)
	log := join(t, a, "", 0)
	r := follow(t, join(t, b, "", 0), 0)
	epoch := campaign(t, log)
	commit(t, log, epoch, 1, 10)
	r.reads(t, 0, 10)
	s.Kill()
	s.Wipe()
	s.Restart()
	if err := r.fails(t); !errors.Is(err, etcd.ErrWiped) {
		t.Errorf("a follower: %v", err)
	}
	if err := log.Commit(limited(t), epoch, 11, payload(11)); !errors.Is(err, etcd.ErrFenced) {
		t.Errorf("the leader commits: %v", err)
	}
	if _, err := log.Campaign(limited(t)); !errors.Is(err, etcd.ErrWiped) {
		t.Errorf("a campaign: %v", err)
	}
	if _, err := log.Head(limited(t)); !errors.Is(err, etcd.ErrWiped) {
		t.Errorf("the head: %v", err)
	}
	if _, err := a.Join(limited(t), log.Fleet(), 10); !errors.Is(err, etcd.ErrWiped) {
		t.Errorf("joining again: %v", err)
	}
	// An operator founds the fleet again from a replica's history.
	if err := a.Found(limited(t), log.Fleet(), 10); err != nil {
		t.Fatal(err)
	}
	if err := b.Found(limited(t), "other", 0); !errors.Is(err, etcd.ErrFounded) {
		t.Errorf("founding twice: %v", err)
	}
	if _, err := b.Join(limited(t), "other", 0); !errors.Is(err, etcd.ErrOtherFleet) {
		t.Errorf("joining as another fleet: %v", err)
	}
	again := join(t, a, log.Fleet(), 10)
	commit(t, again, campaign(t, again), 11, 12)
	follow(t, join(t, b, log.Fleet(), 10), 10).reads(t, 10, 12)
}

func TestEtcdIsRestoredFromAnOldSnapshot(t *testing.T) {
	s := server.Start(t)
	a := open(t, "a", nil, s)
	log := join(t, a, "", 0)
	r := follow(t, join(t, open(t, "b", nil, s), "", 0), 0)
	write(t, log, 1, 10)()
	s.Kill()
	restore := s.Snapshot()
	s.Restart()
	write(t, log, 11, 20)()
	r.reads(t, 0, 20)
	view, _ := a.View()
	s.Kill()
	restore()
	s.Restart()
	if err := r.fails(t); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("a follower: %v", err)
	}
	// The snapshot has the leader's key, and so etcd may have the same leader.
	if err := log.Commit(limited(t), view.Epoch, 21, payload(21)); !errors.Is(err, etcd.ErrRestored) && !errors.Is(err, etcd.ErrFenced) {
		t.Errorf("the leader commits: %v", err)
	}
	if _, err := a.Join(limited(t), log.Fleet(), 20); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("joining again: %v", err)
	}
	if head, err := join(t, a, log.Fleet(), 10).Head(limited(t)); head != 10 || err != nil {
		t.Errorf("head is %d, %v", head, err)
	}
}

// TestAnotherEntryAtTheCursor covers a log that was set back, and has grown beyond the cursor of a follower since.
func TestAnotherEntryAtTheCursor(t *testing.T) {
	s := server.Start(t)
	log := join(t, open(t, "a", nil, s), "", 0)
	epoch := campaign(t, log)
	commit(t, log, epoch, 1, 10)
	position := etcd.Position{Sequence: 10}
	position, err := log.Verify(limited(t), position)
	if err != nil || position.Digest == 0 {
		t.Fatalf("%+v, %v", position, err)
	}
	client := pb.NewKVClient(raw(t, s))
	must[*pb.DeleteRangeResponse](t)(client.DeleteRange(limited(t), &pb.DeleteRangeRequest{Key: fmt.Appendf(nil, "%s/log/%020d", prefix, 10)}))
	if _, err := log.Verify(limited(t), position); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("a log without the entry: %v", err)
	}
	for sequence := uint64(10); sequence <= 12; sequence++ {
		if err := log.Commit(limited(t), epoch, sequence, []byte("another history")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Verify(limited(t), position); !errors.Is(err, etcd.ErrReplaced) {
		t.Errorf("a log with another entry: %v", err)
	}
	err = log.Follow(limited(t), position, func(e etcd.Entry) error { return fmt.Errorf("it reads %+v", e) })
	if !errors.Is(err, etcd.ErrReplaced) {
		t.Errorf("following ended: %v", err)
	}
}

// TestASlowFollowerAfterACompaction: a follower that is busy while its revision is compacted goes
// on after its cursor, or says that this was trimmed. The entries are more than etcd keeps for a
// watch that nobody reads.
func TestASlowFollowerAfterACompaction(t *testing.T) {
	const entries, size = 400, 32 << 10
	for _, c := range []struct {
		name  string
		until uint64
		want  error
	}{
		{"what is trimmed was read", 1, nil},
		{"what is trimmed was not read", entries - 10, etcd.ErrTrimmed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server.Start(t)
			log := join(t, open(t, "a", nil, s), "", 0)
			follower := join(t, open(t, "b", nil, s), "", 0)
			epoch := campaign(t, log)
			reading, release, ended := make(chan bool), make(chan bool), make(chan error, 1)
			done := errors.New("done")
			go func() {
				ended <- follower.Follow(limited(t), etcd.Position{Sequence: 0}, func(e etcd.Entry) error {
					switch e.Sequence {
					case 1:
						close(reading)
						<-release
					case entries:
						return done
					}
					return nil
				})
			}()
			commit(t, log, epoch, 1, 1)
			<-reading
			for sequence := uint64(2); sequence <= entries; sequence++ {
				if err := log.Commit(limited(t), epoch, sequence, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Trim(limited(t), epoch, c.until); err != nil {
				t.Fatal(err)
			}
			close(release)
			if err := <-ended; !errors.Is(err, cmp.Or(c.want, done)) {
				t.Errorf("following ended: %v", err)
			}
		})
	}
}

// TestASlowDisk: etcd syncs each write for longer than a usual call may take. Sessions begin, a replica leads, and its
// entries get into the log.
func TestASlowDisk(t *testing.T) {
	servers, setDelay := server.StartSlow(t, 1)
	setDelay(700 * time.Millisecond)
	a := open(t, "a", func(o *etcd.Options) { o.TTL = etcd.DefaultTTL }, servers...)
	log := join(t, a, "", 0)
	epoch := campaign(t, log)
	commit(t, log, epoch, 1, 3)
	setDelay(0)
	if head, err := log.Head(limited(t)); head != 3 || err != nil {
		t.Errorf("head is %d, %v", head, err)
	}
}
