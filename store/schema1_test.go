package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// schema1File returns a file that an hdsd of schema 1 wrote.
func schema1File(t testing.TB) []byte {
	t.Helper()
	packed, err := os.Open("testdata/schema1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// inSchema1 is what the file holds besides its 20 transitions.
func inSchema1() State {
	at := time.Unix(0, 0x0102030405060708).UTC()
	rack := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a", SubZone: "rack"}, Address: "x:1"}
	return State{
		Plan:     map[string][]health.Hash{"c": {1, 2}},
		Clusters: []string{"pay", "web"},
		Freeze:   &Freeze{Reason: "why", Author: "ann", Since: at, Held: map[health.Hash]health.Status{2: health.Timeout, 1: health.Healthy}},
		Overrides: []Override{
			{Scope: health.Endpoint{Cluster: "pay"}, Status: health.Healthy, Since: at},
			{Scope: rack, Status: health.Draining, Reason: "überall", Author: "ann", Since: at, Until: at.Add(time.Hour)},
		},
		Voted: map[health.Hash]health.Verdict{1: {Status: health.Healthy, Since: at}, 2: {}},
		Trust: map[string]Trust{"c": {Level: Trusted, Reason: "why", Author: "ann", Since: at}, "d": {Level: Distrusted, Since: at}},
		Trials: map[string]*Trials{
			"web": {Proven: []Proof{{1, 2}, {1 << 63, 3}}, Blamed: []uint64{3}, Losses: []Loss{{Checker: "c", Time: at}, {Checker: "prüfer", Time: at.Add(time.Second)}}},
			"pay": {},
		},
	}
}

// wantSchema1 wants all of the file to be there.
func wantSchema1(t *testing.T, s *Store) {
	t.Helper()
	got := stateOf(t, s)
	rack := got.Current
	got.Current = nil
	if len(got.Overrides) == 2 && got.Overrides[0].Scope.Cluster != "pay" {
		got.Overrides[0], got.Overrides[1] = got.Overrides[1], got.Overrides[0]
	}
	if diff := cmp.Diff(inSchema1(), got); diff != "" {
		t.Error(diff)
	}
	if all := queryAll(t, s, Query{}); len(all) != 20 || all[19].Reason != "change 19" || len(rack) != 1 {
		t.Errorf("%d transitions, health of %d endpoints", len(all), len(rack))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestSchema1IsUpgraded(t *testing.T) {
	file := schema1File(t)
	dir := folderWith(t, file)
	for range 2 { // the second time there is nothing to do
		s := open(t, dir)
		wantSchema1(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(file, content(t, dir)) {
		t.Error("the file is as it was")
	}
}

// TestSchema1IsRestored: a copy from before the upgrade can be restored.
func TestSchema1IsRestored(t *testing.T) {
	dir := t.TempDir()
	done, err := Restore(t.Context(), dir, fileWith(t, schema1File(t)), RestoreOptions{})
	if err != nil || done.Transitions != 20 || done.Clusters != 2 || !done.Frozen {
		t.Fatalf("%+v, %v", done, err)
	}
	wantSchema1(t, open(t, dir))
}

// TestDamagedRowsOfSchema1StayDamaged: the upgrade neither fails nor invents anything,
// and a freeze stays one.
func TestDamagedRowsOfSchema1StayDamaged(t *testing.T) {
	for _, u := range upgrades {
		path := fileWith(t, schema1File(t))
		rows := 0
		spoil(t, path, func(tx *bolt.Tx) error {
			bucket := tx.Bucket(u.bucket)
			changed := map[string][]byte{}
			_ = bucket.ForEach(func(k, v []byte) error { changed[string(k)] = append([]byte{v[0] + 1}, v[1:]...); return nil })
			for k, v := range changed {
				if err := bucket.Put([]byte(k), v); err != nil {
					return err
				}
			}
			rows = len(changed)
			return nil
		})
		if info, err := Examine(t.Context(), path); err != nil || !errors.Is(info.Rows, ErrDamaged) {
			t.Errorf("%s: %+v, %v", u.bucket, info, err)
		}
		var reported errorLog
		s := open(t, folderWith(t, read(t, path)), func(o *Options) { o.OnError = reported.add })
		got, want := stateOf(t, s), rows
		if string(u.bucket) == string(freeze) {
			if want = 1; got.Freeze == nil || got.Freeze.Held != nil {
				t.Errorf("freeze: %+v", got.Freeze)
			}
		}
		if len(reported.all) != want {
			t.Errorf("%s: %d damaged rows, reported: %v", u.bucket, want, reported.all)
		}
		if got.Current == nil || len(got.Plan) != 1 {
			t.Errorf("%s: the rest is not there", u.bucket)
		}
	}
}

// FuzzSchema1: no row panics, and what is converted can be read.
func FuzzSchema1(f *testing.F) {
	for i, row := range []string{
		"\x01\x03web\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x03\x01\x01c\x01\x02\x03\x04\x05\x06\a\b",
		"\x01\x01\x01\x02\x03\x04\x05\x06\a\b\x03ann\x03why",
		"\x01\x03\x01\x02\x03\x04\x05\x06\a\b\x01\x02\x03\x04\x05\x06\a\t\x03web\x02eu\x01a\x04rack\x03x:1\x03ann\x03why",
		"\x01\x01\x01\x02\x03\x04\x05\x06\a\b",
		"\x01\x02\x01\x02\x03\x04\x05\x06\a\b\x03ann\x03why",
	} {
		f.Add(byte(i), false, []byte(row))
	}
	f.Add(byte(1), true, []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01"))
	f.Fuzz(func(t *testing.T, which byte, held bool, row []byte) {
		u, k := upgrades[int(which)%len(upgrades)], key(1)
		if string(u.bucket) == string(freeze) {
			if k = freezeKey; held {
				k = heldKey
			}
		}
		message, ok := u.convert(k, row)
		if !ok {
			return
		}
		for _, sealed := range sealedBuckets {
			if string(sealed.name) == string(u.bucket) && !sealed.good(k, message) {
				t.Errorf("%q of %s became %q, which cannot be read", row, u.bucket, message)
			}
		}
	})
}
