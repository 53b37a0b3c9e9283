package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/health"
	"hdsd/store"
)

// TestSalvage makes a database of a damaged one, and says what is lost.
func TestSalvage(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Append([]health.Transition{{Endpoint: health.Endpoint{Cluster: "web", Address: "10.0.0.1:80"}, To: health.Healthy, Reason: "first"}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hdsd.db")
	if code, out, errors := hdsd(t, "restore", "--salvage", "--data-dir", dir); code != exitDone || !strings.Contains(out, "\nnothing is lost\nthe old database is kept: ") {
		t.Errorf("of a whole one: %d, %q, %q", code, out, errors)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.ReplaceAll(string(content), "first", "FIRST"))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errors := hdsd(t, "restore", "--salvage", "--data-dir", dir)
	for _, want := range []string{"lost: 1 row of current\n", "lost: 1 row of transitions\n", "now start hdsd"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("of a damaged one: %d, %q, %q, want %q", code, out, errors, want)
		}
	}
	if code, _, _ := hdsd(t, "restore", "--data-dir", dir); code == exitDone {
		t.Error("restored from nothing")
	}
}
