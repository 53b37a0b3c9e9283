package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"hdsd/internal/export"
)

func TestExport(t *testing.T) {
	f := newFake()
	address, dir := serveFake(t, f), t.TempDir()
	run := func(want int, args ...string) (out, errors string) {
		t.Helper()
		status, out, errors := hdsd(t, append([]string{"export", "--server", address}, args...)...)
		if status != want {
			t.Errorf("%q: exit status %d, %s%s", args, status, out, errors)
		}
		return out, errors
	}
	for name, args := range map[string][]string{"history.csv": nil, "history.jsonl": nil, "history.parquet": nil, "events.csv": {"--events"}, "events.jsonl": {"--events"}, "events.parquet": {"--events"}} {
		path := filepath.Join(dir, name)
		if out, _ := run(exitDone, append(args, path)...); !strings.HasSuffix(out, " rows in "+path+"\n") {
			t.Errorf("%s: %q", name, out)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) != ".parquet" {
			golden(t, "export-"+name, string(text))
		}
	}
	changes, err := parquet.ReadFile[export.Transition](filepath.Join(dir, "history.parquet"))
	if err != nil || len(changes) != 2 || changes[1].To != "UNHEALTHY" || len(changes[1].Observations) != 3 || *changes[1].Observations[0].HTTPStatusCode != 503 {
		t.Errorf("%v: %+v", err, changes)
	}
	events, err := parquet.ReadFile[export.Event](filepath.Join(dir, "events.parquet"))
	if err != nil || len(events) != 3 || events[1].Text != "rolled out v7" {
		t.Errorf("%v: %+v", err, events)
	}
	if out, _ := run(exitDone, "-", "--format", "parquet", "--cluster", "web", "--since", "1d"); !bytes.HasPrefix([]byte(out), []byte("PAR1")) {
		t.Errorf("on standard output: %q", out)
	}
	if r := f.transitions[len(f.transitions)-1]; r.GetCluster() != "web" || r.GetStartTime() == nil || r.GetEndTime() == nil {
		t.Errorf("asked for %v", r)
	}
	run(exitDone, "-", "--format", "csv", "--checker", "checker-1", "--locality", "eu/a", "--unhealthy")
	if r := f.transitions[len(f.transitions)-1]; r.GetChecker() != "checker-1" || r.GetLocality() != "eu/a" || !r.GetUnhealthy() {
		t.Errorf("asked for %v", r)
	}
	run(exitDone, "-", "--format", "csv", "--checker", "checker-1", "--locality", "eu/a", "--events")
	if r := f.events[len(f.events)-1]; r.GetChecker() != "checker-1" || r.GetLocality() != "eu/a" {
		t.Errorf("asked for %v", r)
	}
	for _, args := range [][]string{{}, {"-"}, {"x.csv", "--events", "--unhealthy"}, {filepath.Join(dir, "x.xml")}, {"x.csv", "--format", "xml"}, {"x.csv", "--since", "then"}} {
		run(exitUsage, args...)
	}
	if _, errors := run(exitFailed, filepath.Join(dir, "nowhere", "x.csv")); !strings.Contains(errors, "cannot be written") {
		t.Errorf("where there is no folder: %s", errors)
	}
}

// TestAnExportThatFails leaves what was there, and nothing beside it.
func TestAnExportThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.parquet")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := hdsd(t, "export", path, "--server", "127.0.0.1:1"); status != exitFailed {
		t.Errorf("exit status %d", status)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "before" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
