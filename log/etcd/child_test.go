package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	real "hdsd/internal/demo/envoy"
	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// childEndpoint is the variable that makes the test binary a leader in a process of its own.
const childEndpoint = "HDSD_TEST_ETCD_ENDPOINT"

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(childEndpoint); endpoint != "" {
		fmt.Println("ended:", lead(endpoint))
		return
	}
	os.Exit(m.Run())
}

// lead leads and commits without an end, until it is fenced.
func lead(endpoint string) error {
	ctx := context.Background()
	client, err := etcd.Open(etcd.Options{
		Endpoints: []string{endpoint}, Prefix: prefix, ID: "child", Address: "child:18100", TTL: time.Second, Log: zerolog.Nop(),
	})
	if err != nil {
		return err
	}
	defer client.Close()
	log, err := client.Join(ctx, "", 0)
	if err != nil {
		return err
	}
	epoch, err := log.Campaign(ctx)
	if err != nil {
		return err
	}
	head, err := log.Head(ctx)
	for ; err == nil; head++ {
		err = log.Commit(ctx, epoch, head+1, payload(head+1))
	}
	return err
}

// child starts a leader in a process of its own.
func child(t *testing.T, s *server.Server) *real.Child {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childEndpoint+"="+s.URL)
	process, err := real.StartChild(command, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}

// TestTwoLeadersForAMoment stops the process of a leader, and continues it when there is another
// leader: what it commits then is fenced, whether or not the log has its next entry.
func TestTwoLeadersForAMoment(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries uint64 // of the new leader, before the old one goes on
	}{{"the new leader has committed", 20}, {"the new leader has yet to commit", 0}} {
		t.Run(c.name, func(t *testing.T) {
			s := server.Start(t)
			process := child(t, s)
			log := join(t, open(t, "b", nil, s), "", 0)
			r := follow(t, log, 0)
			until(t, r.get, func(s state) bool { return s.head() >= 10 })
			if err := process.Pause(); err != nil {
				t.Fatal(err)
			}
			epoch := campaign(t, log)
			head := must[uint64](t)(log.Head(limited(t)))
			commit(t, log, epoch, head+1, head+c.entries)
			if err := process.Resume(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-process.Exited():
			case <-limited(t).Done():
				t.Fatal("the old leader goes on")
			}
			if !strings.Contains(process.Logs(), etcd.ErrFenced.Error()) {
				t.Errorf("the old leader %s", process.Logs())
			}
			commit(t, log, epoch, head+c.entries+1, head+30)
			r.reads(t, 0, head+30)
			got, _ := r.get()
			for _, e := range got.Entries {
				if (e.Sequence > head) != (e.Epoch == epoch) {
					t.Errorf("entry %d is of epoch %d", e.Sequence, e.Epoch)
				}
			}
		})
	}
}

// TestADeadLeaderIsDeposed: who knows that the leader's process is gone need not wait for the end
// of its lease, and neither need the process when it starts again.
func TestADeadLeaderIsDeposed(t *testing.T) {
	s := server.Start(t)
	process := child(t, s)
	b := open(t, "b", nil, s)
	log := join(t, b, "", 0)
	until(t, follow(t, log, 0).get, func(s state) bool { return s.head() >= 10 })
	view := until(t, b.View, func(v etcd.View) bool { return v.Leader == "child" && len(v.Members) == 2 })
	process.Kill()
	if err := b.Depose(limited(t), view.Epoch-1); err != nil {
		t.Fatal(err)
	}
	if view, _ := b.View(); view.Leader != "child" {
		t.Error("another epoch's leader was deposed")
	}
	begin := time.Now()
	if err := b.Depose(limited(t), view.Epoch); err != nil {
		t.Fatal(err)
	}
	epoch := campaign(t, log)
	t.Logf("with Depose, there is a leader again after %v", time.Since(begin))
	if view := until(t, b.View, func(v etcd.View) bool { return v.Epoch == epoch }); len(view.Members) != 1 {
		t.Errorf("members are %+v", view.Members)
	}

	if err := log.Resign(limited(t), epoch); err != nil {
		t.Fatal(err)
	}
	process = child(t, s)
	view = until(t, b.View, func(v etcd.View) bool { return v.Leader == "child" })
	process.Kill()
	begin = time.Now()
	campaign(t, log)
	t.Logf("without Depose, there is a leader again after %v", time.Since(begin))
}

// TestAProcessTakesItsKey: a process that starts again after kill -9 registers, while the lease
// of its predecessor is still there.
func TestAProcessTakesItsKey(t *testing.T) {
	s := server.Start(t)
	process := child(t, s)
	b := open(t, "b", nil, s)
	until(t, b.View, func(v etcd.View) bool { return v.Leader == "child" })
	process.Kill()
	again := open(t, "child", func(o *etcd.Options) { o.Version = "second" }, s)
	until(t, b.View, func(v etcd.View) bool { return len(v.Members) == 2 && v.Members[1].Version == "second" })
	if status, _ := again.Status(); len(status.Problems) > 0 && errors.Is(status.Problems[0].Err, etcd.ErrDuplicate) {
		t.Errorf("it waits for itself: %v", status.Problems[0].Err)
	}
}
