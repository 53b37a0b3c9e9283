package store

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// stored returns the rows of some buckets as they are in the file.
func stored(t *testing.T, s *Store, buckets ...[]byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	inspect(t, s, func(tx *bolt.Tx) {
		for _, bucket := range buckets {
			rows := tx.Bucket(bucket)
			if rows == nil {
				continue
			}
			cursor := rows.Cursor()
			for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
				all[fmt.Sprintf("%s %+q", bucket, k)] = fmt.Sprintf("%+q", v)
			}
		}
	})
	return all
}

// TestRowsKeepTheirForm: files that exist have them like this.
func TestRowsKeepTheirForm(t *testing.T) {
	s := open(t, t.TempDir())
	at := time.Unix(0, 0x0102030405060708)
	rack := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a", SubZone: "rack"}, Address: "x:1"}
	s.intake.savePlan(map[string][]health.Hash{"c": {2, 1}})
	s.rememberClusters([]string{"web"})
	s.intake.saveTrials(map[string]*log.Trials{"web": {Proven: []log.Proof{{Build: 1, Shape: 2}}, Blamed: []uint64{3}, Losses: []log.Loss{{Checker: "c", Time: at}}}})
	s.intake.saveFreeze(&log.Freeze{Reason: "why", Author: "ann", Since: at, Held: map[health.Hash]health.Status{2: health.Timeout, 1: health.Healthy}})
	s.intake.saveOverrides(map[health.Endpoint]*log.Override{rack: {Scope: rack, Status: health.Draining, Reason: "why", Author: "ann", Since: at, Until: at.Add(1)}})
	s.intake.saveVoted(map[health.Hash]*health.Verdict{1: {Status: health.Healthy, Since: at}, 2: {}})
	s.intake.saveTrust("c", &log.Trust{Level: log.Trusted, Reason: "why", Author: "ann", Since: at})
	s.intake.saveTakeovers(&log.Entry{GivenBack: []string{"web"}})
	s.AppendAudit(entry("web", at))
	flush(t, s)
	want := map[string]string{
		`audit "\x01\x02\x03\x04\x05\x06\a\b"`:     `"\n\v\b\xf3\xcd\xd0\"\x10\x88\x92\xf1\xf8\x02\x12\x11spiffe://prod/ann\x1a\n10.0.0.1:1\"\x03ann*\vSetOverride2\x03web:\b\u00fcberallB\adrainedJ\x03why\xcdQ\xb6F"`,
		`clusters "\xe2\x16?\u0548\xf7\x99<"`:      `"web\v\xd8nA"`,
		`given-back "\xe2\x16?\u0548\xf7\x99<"`:    `"web\v\xd8nA"`,
		`freeze "freeze"`:                          "\"\\n\\x03why\\x12\\x03ann\\x1a\\v\\b\\xf3\\xcd\\xd0\\\"\\x10\\x88\\x92\\xf1\\xf8\\x02 \\x01@`\\xafn\"",
		`freeze "held"`:                            `"\n\x10\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x12\x02\x01\x04\xdd\xe4\xe0L"`,
		`overrides "'c\xd7\u01eb\xb47?"`:           `"\n\x19\n\x03web\x12\r\n\x02eu\x12\x01a\x1a\x04rack\x1a\x03x:1\x10\x03\x1a\x03why\"\x03ann*\v\b\xf3\xcd\xd0\"\x10\x88\x92\xf1\xf8\x022\v\b\xf3\xcd\xd0\"\x10\x89\x92\xf1\xf8\x02,\x1f\xa1\xea"`,
		`plan "\xecI\xf1\x7f, VD"`:                 `"\x01\x01c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\xb2\x0f\xb9O"`,
		`trials "\xe2\x16?\u0548\xf7\x99<"`:        `"\n\x03web\x12\x12\t\x01\x00\x00\x00\x00\x00\x00\x00\x11\x02\x00\x00\x00\x00\x00\x00\x00\x1a\b\x03\x00\x00\x00\x00\x00\x00\x00\"\x10\n\x01c\x12\v\b\xf3\xcd\xd0\"\x10\x88\x92\xf1\xf8\x02\u04d4\xe1F"`,
		`trust "c"`:                                `"\b\x02\x12\x03why\x1a\x03ann\"\v\b\xf3\xcd\xd0\"\x10\x88\x92\xf1\xf8\x02\xad_\xcd\xcd"`,
		`voted "\x00\x00\x00\x00\x00\x00\x00\x01"`: `"\b\x01\x12\v\b\xf3\xcd\xd0\"\x10\x88\x92\xf1\xf8\x02\xc1:\x86!"`,
		`voted "\x00\x00\x00\x00\x00\x00\x00\x02"`: `"m\x13\xc2}"`,
	}
	if diff := cmp.Diff(want, stored(t, s, plan, clusters, trials, freeze, overrides, voted, trust, givenBack, audit)); diff != "" {
		t.Error(diff)
	}
}

// TestOnlyTheLatestOfARowWaits: the queue stays bounded, however often a row changes.
func TestOnlyTheLatestOfARowWaits(t *testing.T) {
	in := newIntake(1)
	for _, changed := range []map[string][]byte{{"a": {1}, "b": {1}}, {"a": {2}, "c": {1}}, {"b": nil}, {}} {
		in.put(trust, changed)
	}
	in.put(freeze, map[string][]byte{"held": {1}})
	in.put(freeze, nil)
	want := changes{"trust": {"a": {2}, "b": nil, "c": {1}}, "freeze": nil}
	if diff := cmp.Diff(want, in.nextGroup(math.MaxInt).rows); diff != "" {
		t.Error(diff)
	}
	if g := in.nextGroup(math.MaxInt); len(g.rows) > 0 {
		t.Errorf("again: %v", g.rows)
	}
}

// TestUnchangedRowsAreLeftAlone: storing a row again costs no page.
func TestUnchangedRowsAreLeftAlone(t *testing.T) {
	s := open(t, t.TempDir())
	for _, want := range []bool{true, false} {
		edit(t, s, func(tx *bolt.Tx) error {
			err := putRows(tx, clusters, map[string][]byte{"a": {1}, "b": nil})
			if stats := tx.Stats(); stats.GetNodeCount() > 0 != want {
				t.Errorf("%d nodes are changed; want some: %t", stats.GetNodeCount(), want)
			}
			return err
		})
	}
}

func stateError(s *Store) error {
	_, err := s.State()
	return err
}

// TestRowsThatAreWholeButMakeNoSense: their checksum is right, as a faulty release would
// leave them.
func TestRowsThatAreWholeButMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		bucket, k, row []byte
	}{
		{plan, key(1), []byte("nonsense")},
		{trials, key(1), []byte("nonsense")},
		{freeze, freezeKey, []byte("nonsense")},
		{freeze, heldKey, []byte("nonsense")},
		{overrides, key(1), []byte("nonsense")},
		{voted, key(1), []byte("nonsense")},
		{voted, []byte("short"), encodeVoted(&health.Verdict{})},
		{trust, []byte("c"), []byte("nonsense")},
	} {
		var reported errorLog
		s := open(t, t.TempDir(), func(o *Options) { o.OnError = reported.add })
		s.intake.saveFreeze(&log.Freeze{Held: map[health.Hash]health.Status{}})
		flush(t, s)
		if err := errors.Join(s.Check(), stateError(s)); err != nil || len(reported.all) > 0 {
			t.Fatal(err, reported.all)
		}
		putRawRow(s, c.bucket, c.k, c.row)
		flush(t, s)
		if err := stateError(s); err != nil || len(reported.all) != 1 || !reported.has(ErrSkipped) {
			t.Errorf("%s %q: %v; reported: %v", c.bucket, c.k, err, reported.all)
		}
		if err := s.Check(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s %q: Check: %v", c.bucket, c.k, err)
		}
	}
}
