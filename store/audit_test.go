package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// entry is one of the audit, told apart by its target.
func entry(target string, at time.Time) AuditEntry {
	return AuditEntry{
		Time: at, Identity: "spiffe://prod/ann", Address: "10.0.0.1:1", Author: "ann", Action: "SetOverride", Target: target,
		Before: "überall", After: "drained", Reason: "why",
	}
}

// pages reads the audit page by page, and returns the targets of its entries.
func pages(t *testing.T, s *Store, q AuditQuery) (targets []string) {
	t.Helper()
	for {
		found, more, err := s.Audit(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			targets = append(targets, e.Target)
		}
		if !more {
			return targets
		}
		q.After = found[len(found)-1].Place
	}
}

func TestTheAuditIsKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if found, more, err := s.Audit(AuditQuery{Limit: 1}); len(found) > 0 || more || err != nil {
		t.Errorf("an empty audit has %v, %t, %v", found, more, err)
	}
	for i := range 7 {
		s.AppendAudit(entry(fmt.Sprint(i), day.Add(time.Duration(i)*time.Hour)))
	}
	s.AppendAudit(entry("behind", day)) // the clock was set back
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	s.AppendAudit(entry("again", day.Add(10*time.Hour)))
	flush(t, s)
	all := []string{"0", "1", "2", "3", "4", "5", "6", "behind", "again"}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for _, test := range []struct {
		q    AuditQuery
		want []string
	}{
		{AuditQuery{Limit: 100}, all},
		{AuditQuery{Limit: 9}, all},
		{AuditQuery{Limit: 2}, all},
		{AuditQuery{Limit: 2, NewestFirst: true}, backwards},
		{AuditQuery{Limit: 2, Start: day.Add(5 * time.Hour)}, []string{"5", "6", "again"}},
		{AuditQuery{Limit: 1, End: day.Add(time.Hour)}, []string{"0", "behind"}},
		{AuditQuery{Limit: 1, Start: day.Add(time.Hour), End: day.Add(2 * time.Hour), NewestFirst: true}, []string{"1"}},
	} {
		if diff := cmp.Diff(test.want, pages(t, s, test.q)); diff != "" {
			t.Errorf("%+v: %s", test.q, diff)
		}
	}
	found, _, err := s.Audit(AuditQuery{Limit: 1})
	if err != nil || !cmp.Equal(found[0].AuditEntry, entry("0", day)) {
		t.Errorf("%v: %s", err, cmp.Diff(entry("0", day), found[0].AuditEntry))
	}
}

// TestTheAuditIsBounded: the oldest entries go, over restarts too.
func TestTheAuditIsBounded(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s := open(t, dir)
		s.trail.limit = 5
		for i := range 4 {
			s.AppendAudit(entry(fmt.Sprint(round, i), day))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"1 3", "2 0", "2 1", "2 2", "2 3"}
	if diff := cmp.Diff(want, pages(t, open(t, dir), AuditQuery{Limit: 2})); diff != "" {
		t.Error(diff)
	}
}

// TestTheAuditIsBoundedWhileTheDiskFails: the oldest entries that wait go, an entry stands
// in their place, and what is on disk stays.
func TestTheAuditIsBoundedWhileTheDiskFails(t *testing.T) {
	failed := make(chan struct{}, 1000)
	var gone AuditGap
	s := open(t, t.TempDir(), func(o *Options) {
		o.maxSize = 256 << 10
		o.OnError = func(error) { failed <- struct{}{} }
		o.OnAuditGap = func(g AuditGap) { gone = g }
	})
	s.AppendAudit(entry("before", day))
	flush(t, s)
	s.intake.savePlan(map[string][]health.Hash{"big": make([]health.Hash, 100_000)})
	<-failed // the plan does not fit, and is tried again and again
	const count = 3 * maxWaiting
	after := func(n int) time.Time { return day.Add(time.Duration(1+n) * time.Second) }
	for n := range count {
		s.AppendAudit(entry(fmt.Sprint(n), after(n)))
	}
	if waiting := len(s.trail.waiting); waiting > maxWaiting {
		t.Errorf("%d entries wait", waiting)
	}
	edit(t, s, func(tx *bolt.Tx) error { tx.DB().MaxSize = 0; return nil })
	flush(t, s)
	prune(t, s) // the writer is past the group

	kept := count - int(gone.Entries)
	want := []string{"before", "audit"}
	for n := count - kept; n < count; n++ {
		want = append(want, fmt.Sprint(n))
	}
	if kept < maxWaiting*7/8 || kept > maxWaiting {
		t.Errorf("%d of %d are kept", kept, count)
	}
	if diff := cmp.Diff(want, pages(t, s, AuditQuery{Limit: 1000})); diff != "" {
		t.Error(diff)
	}
	if want := (AuditGap{Start: after(0), End: after(count - kept - 1), Entries: gone.Entries}); gone != want {
		t.Errorf("told of %+v, not %+v", gone, want)
	}
	found, _, err := s.Audit(AuditQuery{Start: after(0), Limit: 1})
	mark := AuditEntry{Time: after(0), Action: "AuditGap", Target: "audit", Reason: fmt.Sprintf(
		"%d entries until %s are missing, because the disk did not take them: the log has them as events \"audit\"",
		gone.Entries, after(count-kept-1).Format(time.RFC3339),
	)}
	if err != nil || !cmp.Equal(found[0].AuditEntry, mark) {
		t.Errorf("%v: %s", err, cmp.Diff(mark, found[0].AuditEntry))
	}
}
