package replicas

import (
	"testing"
	"time"

	"hdsd/test/etcd"
)

// TestReplicasEndAndHang covers the loss of replicas in each way, one after the other.
func TestReplicasEndAndHang(t *testing.T) {
	t.Parallel()
	l := newLab(t, etcd.StartCluster(t, 1, quickEtcd...), shortTTL)
	var r *process
	restart := func() { r.start() }
	l.fault("kill -9 of a follower", func() { r = l.follower(); l.behind(r); r.Kill() }, restart)
	l.fault("kill -9 of the leader", func() { r = l.leader(); l.behind(r); r.Kill() }, restart)
	l.fault("SIGTERM of the leader", func() {
		r = l.leader()
		l.behind(r)
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	}, restart)
	pause := either(2*time.Second, 8*time.Second) // longer than a session
	hang := func() {
		l.behind(r)
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
	}
	resume := func() {
		l.still(func() {
			if err := r.Resume(); err != nil {
				t.Fatal(err)
			}
		})
	}
	l.fault("SIGSTOP of the leader", func() { r = l.leader(); hang() }, resume)
	l.fault("SIGSTOP of a follower", func() { r = l.follower(); hang() }, resume)
	l.awayForLong()
	l.fault("kill -9 of all", func() {
		for _, r := range l.replicas {
			l.behind(r)
			r.Kill()
		}
	}, func() {
		for _, r := range l.replicas {
			r.launch()
		}
		for _, r := range l.replicas {
			r.ready()
		}
	})
	l.finish()
}
