package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/machine/recording"
	"hdsd/source/sample"
)

// recordOrders writes a recording of orders, a second apart. A falsified recording has an additional effect.
func recordOrders(t *testing.T, falsified bool) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.hdsd")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	timing := machine.Timing{Report: time.Second, Grace: time.Second, Settle: time.Second}
	var w *recording.Writer
	e, w, err := recording.New(file, &recording.Header{Version: "1.2.3", Platform: "plan9/mips", Node: "n", Start: noon, Timing: timing}, &log.State{}, func(p recording.Piece) bool {
		_, err := w.Write(p)
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m, now := machine.New(timing), noon
	m.Restore(&log.State{})
	rules := catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 1}})
	scope := health.Endpoint{Cluster: "web"}
	for _, event := range []machine.Event{
		machine.Delivered{Delivery: catalog.Delivery{Rules: rules, Complete: true, Changed: []catalog.Change{
			{Cluster: catalog.Prepare(sample.Web("web", "10.0.0.7:8080"), rules)}, {Cluster: catalog.Prepare(sample.Web("pay", "10.0.0.8:8080"), rules)},
		}}},
		machine.Begun{}, machine.Connected{Checker: health.Checker{ID: "checker-1"}}, machine.Tick{},
		&machine.SetTrust{Checker: "checker-1", Trust: log.Trust{Level: log.Distrusted, Author: "ann@here", Reason: "its network is broken"}},
		&machine.SetOverride{Override: log.Override{Scope: scope, Status: health.Draining, Author: "ann@here", Reason: "power works"}},
		&machine.Freeze{Author: "bob", Reason: "moving"}, &machine.Unfreeze{Author: "bob"}, &machine.ClearOverrides{Scope: scope, All: true, Author: "bob"},
	} {
		now = now.Add(time.Second)
		e.Begin(now, event)
		m.Step(now, event, e.Effect)
		if _, ok := event.(*machine.Freeze); ok && falsified {
			e.Effect(machine.ChangesLeftOut{Count: 1})
		}
		e.End()
	}
	e.Flush()
	if err := w.End(recording.Stopped); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayShowsDecisions(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	path := recordOrders(t, false)
	for _, format := range []string{"table", "json"} {
		status, out, errors := hdsd(t, "replay", path, "-o", format)
		if golden(t, "replay."+format, out+errors); status != exitDone {
			t.Errorf("exit status %d", status)
		}
	}
	for _, test := range []struct {
		flags     []string
		want, not string
	}{
		{[]string{"--cluster", "w*"}, "web", "distrusted"},
		{[]string{"--until", "2026-01-02T12:00:06Z"}, "distrusted", "power works"},
		{[]string{"--since", "2026-01-02T12:00:06Z"}, "power works", "distrusted"},
	} {
		status, out, _ := hdsd(t, append([]string{"replay", path}, test.flags...)...)
		if status != exitDone || !strings.Contains(out, test.want) || strings.Contains(out, test.not) || !strings.Contains(out, "9 events over 9s replayed") {
			t.Errorf("%v: exit status %d\n%s", test.flags, status, out)
		}
	}
}

// failingWriter fails once, and takes everything after that.
type failingWriter struct{ failed bool }

// Write implements io.Writer.
func (w *failingWriter) Write(p []byte) (int, error) {
	if !w.failed {
		w.failed = true
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestReplayEndsWithWriteError covers an effect with several lines: later successes do not hide the error.
func TestReplayEndsWithWriteError(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	path := recordOrders(t, false)
	for _, format := range []string{"table", "json"} {
		var errors bytes.Buffer
		status := run(t.Context(), []string{"replay", path, "-o", format, "--since", "2026-01-02T12:00:06Z"}, &failingWriter{}, &errors)
		if status != exitFailed || errors.String() != "hdsd: io: read/write on closed pipe\n" {
			t.Errorf("%s: exit status %d, %q", format, status, &errors)
		}
	}
}

func TestReplayErrors(t *testing.T) {
	path := recordOrders(t, true)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"other": "static_resources: {}\n", "cut": string(whole[:40]), "damaged": string(whole[:len(whole)/2]) + strings.Repeat("x", 200)})
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{path}, exitFailed, "event 7 (Freeze, 2026-01-02T12:00:07.345Z): it had 3 effects then, and has 2 now: the recording is by hdsd 1.2.3 on plan9/mips, and this is hdsd "},
		{[]string{file("missing")}, exitFailed, "no such file"},
		{[]string{file("other")}, exitFailed, file("other") + ": this is no recording of hdsd"},
		{[]string{file("cut")}, exitFailed, file("cut") + ": it ends before the first event: the file is cut off"},
		{[]string{file("damaged")}, exitFailed, "the file is damaged"},
		{nil, exitUsage, "replay takes one argument: the FILE of a recording"},
		{[]string{path, "-o", "csv"}, exitUsage, `--output "csv": want table or json`},
		{[]string{path, "--color", "red"}, exitUsage, "red"},
		{[]string{path, "--since", "never"}, exitUsage, "never"},
		{[]string{path, "--since", "2026-01-02", "--until", "2026-01-01"}, exitUsage, "exchange the two"},
	} {
		status, _, errors := hdsd(t, append([]string{"replay"}, test.args...)...)
		if status != test.status || !strings.Contains(errors, test.want) {
			t.Errorf("%v: exit status %d, %s; want %d, %s", test.args, status, errors, test.status, test.want)
		}
	}
}
