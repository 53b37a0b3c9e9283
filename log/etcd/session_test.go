package etcd_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// says waits until the status of a client has an error of a task.
func says(t *testing.T, client *etcd.Client, task etcd.Task, want error) {
	t.Helper()
	until(t, client.Status, func(s etcd.Status) bool {
		return slices.ContainsFunc(s.Problems, func(p etcd.Problem) bool { return p.Task == task && errors.Is(p.Err, want) })
	})
}

// connected waits until a client is, without problems.
func connected(t *testing.T, client *etcd.Client) etcd.Status {
	t.Helper()
	return until(t, client.Status, func(s etcd.Status) bool { return s.Connected && len(s.Problems) == 0 })
}

func TestEtcdIsAwayAtTheStart(t *testing.T) {
	s := server.Start(t)
	s.Kill()
	a := open(t, "a", nil, s)
	says(t, a, etcd.TaskSession, etcd.ErrUnavailable)
	joined := make(chan *etcd.Log)
	go func() {
		log, _ := a.Join(limited(t), "", 0)
		joined <- log
	}()
	says(t, a, etcd.TaskJoin, etcd.ErrUnavailable)
	s.Restart()
	log := <-joined
	commit(t, log, campaign(t, log), 1, 3)
	// etcd grants no less than three ticks of its election, which are 1.5 s by default.
	if status := connected(t, a); status.TTL != 2*time.Second {
		t.Errorf("the session's TTL is %v", status.TTL)
	}
	s.Kill()
	says(t, a, etcd.TaskSession, etcd.ErrUnavailable)
	s.Restart()
	connected(t, a)
}

// TestTwoProcessesWithOneID: the second one waits for the first, and says so.
func TestTwoProcessesWithOneID(t *testing.T) {
	s := server.Start(t)
	first := open(t, "a", func(o *etcd.Options) { o.Address = "first:1" }, s)
	until(t, first.View, func(v etcd.View) bool { return len(v.Members) == 1 })
	second := open(t, "a", func(o *etcd.Options) { o.Address = "second:1" }, s)
	says(t, second, etcd.TaskRegister, etcd.ErrDuplicate)
	until(t, second.View, func(v etcd.View) bool { return len(v.Members) == 1 && v.Members[0].Address == "first:1" })
	first.Close()
	until(t, second.View, func(v etcd.View) bool { return len(v.Members) == 1 && v.Members[0].Address == "second:1" })
	connected(t, second)
}

// TestTwoProcessesWithOneIDAndAddress: the second one takes the first for itself before a restart,
// once, and the first then waits: they do not replace each other for ever.
func TestTwoProcessesWithOneIDAndAddress(t *testing.T) {
	s := server.Start(t)
	first := open(t, "a", func(o *etcd.Options) { o.Version = "first" }, s)
	until(t, first.View, func(v etcd.View) bool { return len(v.Members) == 1 })
	second := open(t, "a", func(o *etcd.Options) { o.Version = "second" }, s)
	until(t, second.View, func(v etcd.View) bool { return len(v.Members) == 1 && v.Members[0].Version == "second" })
	says(t, first, etcd.TaskRegister, etcd.ErrDuplicate)
	if view, _ := second.View(); view.Members[0].Version != "second" {
		t.Errorf("the first has replaced the second: %+v", view)
	}
	second.Close()
	until(t, first.View, func(v etcd.View) bool { return len(v.Members) == 1 && v.Members[0].Version == "first" })
}

// TestTheLeaderHandsOver: by Resign and by Close the next candidate leads, and the one before is
// fenced.
func TestTheLeaderHandsOver(t *testing.T) {
	s := server.Start(t)
	a, b := open(t, "a", nil, s), open(t, "b", nil, s)
	logA, logB := join(t, a, "", 0), join(t, b, "", 0)
	first := campaign(t, logA)
	next := make(chan int64)
	lead := func(log *etcd.Log) {
		epoch, _ := log.Campaign(limited(t))
		next <- epoch
	}
	go lead(logB)
	commit(t, logA, first, 1, 5)
	if err := logA.Resign(limited(t), first); err != nil {
		t.Fatal(err)
	}
	second := <-next
	if second <= first {
		t.Fatalf("epoch %d follows on %d", second, first)
	}
	if err := logA.Commit(limited(t), first, 6, payload(6)); !errors.Is(err, etcd.ErrFenced) {
		t.Errorf("a leader that resigned commits: %v", err)
	}
	if err := logA.Trim(limited(t), first, 3); !errors.Is(err, etcd.ErrFenced) {
		t.Errorf("a leader that resigned trims: %v", err)
	}
	commit(t, logB, second, 6, 10)
	if err := logA.Resign(limited(t), first); err != nil {
		t.Errorf("resigning twice: %v", err)
	}
	go lead(logA)
	b.Close()
	third := <-next
	commit(t, logA, third, 11, 12)
	follow(t, logA, 0).reads(t, 0, 12)
	if err := logB.Commit(limited(t), second, 13, payload(13)); err == nil {
		t.Error("a closed client commits")
	}
	if _, err := logB.Campaign(limited(t)); err == nil {
		t.Error("a closed client campaigns")
	}
}
