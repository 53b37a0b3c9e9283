package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// schema2File returns a file that an hdsd of schema 2 wrote.
func schema2File(t testing.TB) []byte {
	t.Helper()
	packed, err := os.Open("testdata/schema2.db.gz")
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

// inSchema2 is what the file holds besides its 20 transitions.
func inSchema2() log.State {
	at := time.Unix(0, 0x0102030405060708).UTC()
	rack := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a", SubZone: "rack"}, Address: "x:1"}
	return log.State{
		Plan:     map[string][]health.Hash{"c": {1, 2}},
		Clusters: []string{"pay", "web"},
		Freeze:   &log.Freeze{Reason: "why", Author: "ann", Since: at, Held: map[health.Hash]health.Status{2: health.Timeout, 1: health.Healthy}},
		Overrides: []log.Override{
			{Scope: health.Endpoint{Cluster: "pay"}, Status: health.Healthy, Since: at},
			{Scope: rack, Status: health.Draining, Reason: "überall", Author: "ann", Since: at, Until: at.Add(time.Hour)},
		},
		Voted: map[health.Hash]health.Verdict{1: {Status: health.Healthy, Since: at}, 2: {}},
		Trust: map[string]log.Trust{"c": {Level: log.Trusted, Reason: "why", Author: "ann", Since: at}, "d": {Level: log.Distrusted, Since: at}},
		Trials: map[string]*log.Trials{
			"web": {Proven: []log.Proof{{Build: 1, Shape: 2}, {Build: 1 << 63, Shape: 3}}, Blamed: []uint64{3}, Losses: []log.Loss{{Checker: "c", Time: at}, {Checker: "prüfer", Time: at.Add(time.Second)}}},
			"pay": {},
		},
	}
}

// wantSchema2 wants all of the file to be there.
func wantSchema2(t *testing.T, s *Store) {
	t.Helper()
	got := stateOf(t, s)
	rack := got.Current
	got.Current = nil
	if len(got.Overrides) == 2 && got.Overrides[0].Scope.Cluster != "pay" {
		got.Overrides[0], got.Overrides[1] = got.Overrides[1], got.Overrides[0]
	}
	if diff := cmp.Diff(inSchema2(), got); diff != "" {
		t.Error(diff)
	}
	if all := queryAll(t, s, Query{}); len(all) != 20 || all[19].Reason != "change 19" || len(rack) != 1 {
		t.Errorf("%d transitions, health of %d endpoints", len(all), len(rack))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestSchema2IsUpgraded(t *testing.T) {
	file := schema2File(t)
	dir := folderWith(t, file)
	for range 2 { // the second time there is nothing to do
		s := open(t, dir)
		wantSchema2(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(file, content(t, dir)) {
		t.Error("the file is as it was")
	}
}

// TestSchema2IsRestored: a copy from before the upgrade can be restored.
func TestSchema2IsRestored(t *testing.T) {
	dir := t.TempDir()
	done, err := Restore(t.Context(), dir, fileWith(t, schema2File(t)), RestoreOptions{})
	if err != nil || done.Transitions != 20 || done.Clusters != 2 || !done.Frozen {
		t.Fatalf("%+v, %v", done, err)
	}
	wantSchema2(t, open(t, dir))
}

// TestOtherSchemasAreRefused: hdsd leaves a file that it cannot read as it is.
func TestOtherSchemasAreRefused(t *testing.T) {
	for version, says := range map[uint32]string{
		0: "has schema 0, and this hdsd reads 2 to 3: move the file away",
		1: "has schema 1, and this hdsd reads 2 to 3: move the file away",
		4: "newer hdsd (schema 4, this one knows 3): upgrade hdsd",
	} {
		path := fileWith(t, schema2File(t))
		spoil(t, path, func(tx *bolt.Tx) error { return putSchema(tx, version, 1) })
		refused(t, folderWith(t, read(t, path)), Options{}, ErrVersion, says)
		if _, err := Examine(t.Context(), path); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), says) {
			t.Errorf("schema %d: %v", version, err)
		}
	}
}
