package etcd_test

import (
	"errors"
	"testing"

	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

func TestReplicasShareOneLog(t *testing.T) {
	s := server.Start(t)
	a, b := open(t, "a", nil, s), open(t, "b", nil, s)
	logA := join(t, a, "", 0)
	logB := join(t, b, "", 0)
	if logA.Fleet() != logB.Fleet() || logA.Fleet() == "" {
		t.Fatalf("two fleets: %q and %q", logA.Fleet(), logB.Fleet())
	}
	view := until(t, a.View, func(v etcd.View) bool { return len(v.Members) == 2 })
	if m := view.Members[1]; m.ID != "b" || m.Address != "b:18100" || m.Version != "test" || m.Since.IsZero() || m.Started.IsZero() {
		t.Errorf("b is %+v", m)
	}
	epoch := campaign(t, logA)
	early := follow(t, logB, 0)
	commit(t, logA, epoch, 1, 200)
	late := follow(t, logB, 20)
	early.reads(t, 0, 200)
	late.reads(t, 20, 200)
	if head, err := logB.Head(limited(t)); head != 200 || err != nil {
		t.Errorf("head is %d, %v", head, err)
	}
	if view, _ := b.View(); view.Leader != "a" || view.Epoch != epoch {
		t.Errorf("leader is %q in epoch %d, want a in %d", view.Leader, view.Epoch, epoch)
	}

	for _, c := range []struct {
		name     string
		log      *etcd.Log
		epoch    int64
		sequence uint64
		size     int
		want     error
	}{
		{"a follower", logB, epoch, 201, 1, etcd.ErrFenced},
		{"another epoch", logA, epoch + 1, 201, 1, etcd.ErrFenced},
		{"no sequence", logA, epoch, 0, 1, etcd.ErrGap},
		{"another entry", logA, epoch, 200, 1, etcd.ErrTaken},
		{"a gap", logA, epoch, 202, 1, etcd.ErrRestored},
		{"too large", logA, epoch, 201, etcd.MaxPayload + 1, etcd.ErrTooLarge},
		{"as large as possible", logA, epoch, 201, etcd.MaxPayload, nil},
	} {
		if err := c.log.Commit(limited(t), c.epoch, c.sequence, make([]byte, c.size)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestATrimmedLog(t *testing.T) {
	s := server.Start(t)
	a := open(t, "a", nil, s)
	log := join(t, a, "", 0)
	epoch := campaign(t, log)
	commit(t, log, epoch, 1, 1200)
	if err := log.Trim(limited(t), epoch+1, 5); !errors.Is(err, etcd.ErrFenced) {
		t.Errorf("another epoch trims: %v", err)
	}
	if err := log.Trim(limited(t), epoch, 1100); err != nil {
		t.Fatal(err)
	}
	follow(t, log, 1100).reads(t, 1100, 1200)
	if err := follow(t, log, 1099).fails(t); !errors.Is(err, etcd.ErrTrimmed) {
		t.Errorf("a cursor behind the trim: %v", err)
	}
	// The last entry stays, so that the log says where it ends.
	if err := log.Trim(limited(t), epoch, 5000); err != nil {
		t.Fatal(err)
	}
	if head, err := log.Head(limited(t)); head != 1200 || err != nil {
		t.Errorf("head is %d, %v", head, err)
	}
	commit(t, log, epoch, 1201, 1202)
	follow(t, log, 1199).reads(t, 1199, 1202)
}

// A log that goes on in etcd after a local one has no entries of the local one.
func TestALogThatGoesOn(t *testing.T) {
	s := server.Start(t)
	a, b := open(t, "a", nil, s), open(t, "b", nil, s)
	log := join(t, a, "", 4711)
	if head, err := log.Head(limited(t)); head != 4711 || err != nil {
		t.Fatalf("head is %d, %v", head, err)
	}
	if err := follow(t, join(t, b, "", 0), 0).fails(t); !errors.Is(err, etcd.ErrTrimmed) {
		t.Errorf("an empty replica follows: %v", err)
	}
	epoch := campaign(t, log)
	for _, wrong := range []uint64{1, 4711} {
		if err := log.Commit(limited(t), epoch, wrong, payload(wrong)); !errors.Is(err, etcd.ErrGap) {
			t.Errorf("an entry at %d: %v", wrong, err)
		}
	}
	commit(t, log, epoch, 4712, 4714)
	follow(t, log, 4711).reads(t, 4711, 4714)
}

func TestAFollowerThatRefuses(t *testing.T) {
	s := server.Start(t)
	log := join(t, open(t, "a", nil, s), "", 0)
	commit(t, log, campaign(t, log), 1, 5)
	full := errors.New("the disk is full")
	taken := 0
	err := log.Follow(limited(t), etcd.Position{Sequence: 1}, func(e etcd.Entry) error {
		if taken++; e.Sequence == 3 {
			return full
		}
		return nil
	})
	if err != full || taken != 2 { //nolint:errorlint // it is returned as it is
		t.Errorf("after %d entries: %v", taken, err)
	}
}
