package replicas

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hdsd/test/etcd"
)

// TestEtcdEndsAndHangs covers an etcd of one member that is away, and one that hangs.
func TestEtcdEndsAndHangs(t *testing.T) {
	t.Parallel()
	servers := etcd.StartCluster(t, 1, quickEtcd...)
	l := newLab(t, servers, shortTTL)
	server, away := servers[0], either(2*time.Second, 10*time.Second)
	l.fault("kill -9 of etcd", func() { server.Kill(); time.Sleep(away) }, func() { server.Restart() })
	l.fault("SIGSTOP of etcd", func() {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(away)
	}, func() {
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
	})
	var r *process
	l.fault("kill -9 of etcd and of the leader", func() {
		r = l.leader()
		l.behind(r)
		server.Kill()
		r.Kill()
		r.launch()
		time.Sleep(away)
	}, func() {
		server.Restart()
		r.ready()
	})
	l.finish()
}

// TestEtcdLosesItsLeader covers a cluster of three members, of which those that lead end, hang, and come back.
func TestEtcdLosesItsLeader(t *testing.T) {
	t.Parallel()
	servers := etcd.StartCluster(t, 3, quickEtcd...)
	l := newLab(t, servers, shortTTL)
	for _, s := range servers { // one of them leads
		l.fault("kill -9 of a member of etcd", func() { s.Kill(); time.Sleep(either(500*time.Millisecond, 5*time.Second)) }, func() { s.Restart() })
	}
	l.finish()
}

// TestReplicasStartBeforeEtcd covers a first start of three replicas while there is no etcd.
func TestReplicasStartBeforeEtcd(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t, quickEtcd...)
	server.Kill()
	server.Wipe()
	l := prepare(t, []*etcd.Server{server}, shortTTL)
	for _, r := range l.replicas {
		r.launch()
	}
	for _, r := range l.replicas {
		r.until("to say that etcd does not answer", func() bool {
			status, text := r.readiness()
			return status == http.StatusServiceUnavailable && strings.Contains(text, "etcd has not answered")
		})
	}
	l.surround()
	time.Sleep(either(time.Second, 10*time.Second))
	server.Restart()
	for _, r := range l.replicas {
		r.ready()
	}
	l.settle()
	l.begin()
	l.operate()
	l.finish()
}

// TestEtcdLosesTheLog covers an etcd that is wiped, and one that is restored from an old snapshot. All replicas keep
// the latest health, and say what is wrong. They go on by themselves after an operator has followed the advice.
func TestEtcdLosesTheLog(t *testing.T) {
	t.Parallel()
	server := etcd.StartCluster(t, 1, quickEtcd...)[0]
	l := newLab(t, []*etcd.Server{server}, shortTTL)
	var old func()
	l.fault("a snapshot of etcd", func() { server.Kill(); old = server.Snapshot() }, func() { server.Restart() })
	for _, loss := range []struct {
		name, advice string
		lose         func()
	}{
		{"etcd wiped", "etcd has lost this fleet", server.Wipe},
		{"etcd restored from an old snapshot", "as if etcd was restored from an old snapshot", old},
	} {
		var latest func()
		l.fault(loss.name, func() {
			server.Kill()
			latest = server.Snapshot()
			loss.lose()
			server.Restart()
			for _, r := range l.replicas {
				l.behind(r)
				r.until("to say that the log is lost", func() bool {
					_, text := r.readiness()
					return strings.Contains(text, loss.advice)
				})
			}
		}, func() { // the advice: restore the latest snapshot
			server.Kill()
			latest()
			server.Restart()
			for _, r := range l.replicas {
				r.ready()
			}
		})
	}
	l.finish()
}
