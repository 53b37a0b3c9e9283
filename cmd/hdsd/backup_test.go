package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/store"
)

// served is a coordinator run as the command does.
type served struct {
	grpc string
	stop func()
}

// serveFolder serves hdsd.yaml of a folder, until stop or the end of the test.
func serveFolder(t *testing.T, dir string) served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log, to := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-c", filepath.Join(dir, "hdsd.yaml")}, to, to)
		to.Close()
	}()
	lines := json.NewDecoder(log)
	var line struct{ Event, GRPC string }
	for line.Event != "serving" {
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, log) }()
	stop := func() {
		cancel()
		<-done
	}
	t.Cleanup(func() {
		stop()
		if status := <-ended; status != exitDone {
			t.Errorf("serve: exit status %d", status)
		}
	})
	return served{line.GRPC, stop}
}

// recorded is when the first transition was, within the retention.
var recorded = time.Now().Truncate(time.Minute).Add(-24 * time.Hour).UTC()

// record adds so many transitions to the history of a folder.
func record(t *testing.T, dir string, count int) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, "data"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]health.Transition, count)
	for n := range all {
		all[n] = health.Transition{
			Time: recorded.Add(time.Duration(n) * time.Minute), Endpoint: health.Endpoint{Cluster: "plain", Address: "10.0.0.1:80"},
			From: health.Status(1 + n%2), To: health.Status(1 + (n+1)%2), Reason: "test",
		}
	}
	s.Append(all) // in one commit, so that no page of an earlier one is left in the file
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestBackupAndRestore takes a copy of a running coordinator, lets the history
// go on, and goes back.
func TestBackupAndRestore(t *testing.T) {
	dir := folder(t, map[string]string{"hdsd.yaml": goodConfig + anyAddresses, "clusters.yaml": goodClusters})
	record(t, dir, 300)
	site := serveFolder(t, dir)
	if code, _, errors := hdsd(t, "freeze", "--reason", "test", "--server", site.grpc); code != exitDone {
		t.Fatal(errors)
	}
	copies := t.TempDir()
	path := filepath.Join(copies, "copy.db")
	for _, says := range []string{"", "hdsd: the copy has replaced the existing " + path + "\n"} {
		code, out, errors := hdsd(t, "backup", path, "--server", site.grpc)
		want := fmt.Sprintf("copy.db: 300 transitions from %s to %s, 1 cluster, ", recorded.Format(time.RFC3339), recorded.Add(299*time.Minute).Format(time.RFC3339))
		if code != exitDone || errors != says || !strings.HasPrefix(out, filepath.Join(copies, want)) {
			t.Fatalf("exit status %d, %q, %s", code, out, errors)
		}
	}
	code, out, errors := hdsd(t, "backup", "-", "--server", site.grpc)
	onDisk, err := os.ReadFile(path)
	if err != nil || code != exitDone || errors != "" || len(out) != len(onDisk) {
		t.Errorf("to standard output: exit status %d, %d bytes, %s; %v", code, len(out), errors, err)
	}
	code, _, errors = hdsd(t, "backup", filepath.Join(dir, "data", "hdsd.db"), "--server", site.grpc)
	if code != exitFailed || !strings.Contains(errors, "is what a coordinator works with") {
		t.Errorf("onto its database: exit status %d, %s", code, errors)
	}
	code, _, errors = hdsd(t, "restore", path, "-c", filepath.Join(dir, "hdsd.yaml"))
	if code != exitFailed || !strings.Contains(errors, "stop the other hdsd") {
		t.Errorf("restore while it runs: exit status %d, %s", code, errors)
	}
	if got := names(t, copies); len(got) != 1 {
		t.Error("left behind:", got)
	}

	site.stop()
	record(t, dir, 7)
	code, out, errors = hdsd(t, "restore", path, "-c", filepath.Join(dir, "hdsd.yaml"))
	for _, want := range []string{"hdsd.db: 300 transitions from", "the old database is kept: " + filepath.Join(dir, "data", "hdsd.db.2"), "hdsd was frozen", "now start hdsd"} {
		if code != exitDone || errors != "" || !strings.Contains(out, want) {
			t.Fatalf("exit status %d, %s, nothing of %q in %s", code, errors, want, out)
		}
	}
	site = serveFolder(t, dir)
	code, out, errors = hdsd(t, "history", "-o", "json", "--server", site.grpc)
	if code != exitDone || strings.Count(out, "\n") != 300 || !strings.Contains(errors, "frozen since") {
		t.Errorf("exit status %d, %d transitions, %s", code, strings.Count(out, "\n"), errors)
	}
}

// tape is a coordinator whose copies are these parts.
type tape struct {
	hdsdv1.UnimplementedControlServer
	size  int64
	parts []string
	ends  error
}

func (f *tape) Backup(_ *hdsdv1.BackupRequest, to grpc.ServerStreamingServer[hdsdv1.BackupResponse]) error {
	for _, part := range f.parts {
		if err := to.Send(&hdsdv1.BackupResponse{Size: f.size, Data: []byte(part)}); err != nil {
			return err
		}
	}
	return f.ends
}

// TestBackupOfNoUse: what is not whole never gets the name that was asked for.
func TestBackupOfNoUse(t *testing.T) {
	for name, c := range map[string]struct {
		from tape
		says string
	}{
		"nothing":   {tape{}, "of 0 bytes of the copy, 0 have come"},
		"cut off":   {tape{size: 7, parts: []string{"ab", "cd"}}, "of 7 bytes of the copy, 4 have come"},
		"stopped":   {tape{size: 7, parts: []string{"ab"}, ends: status.Error(codes.Aborted, "hdsd is stopping")}, "hdsd is stopping"},
		"killed":    {tape{size: 7 << 20, parts: []string{"ab"}, ends: status.Error(codes.Unavailable, "EOF")}, "stopped or was restarted when 1 KiB of 7168 KiB had come: the copy is incomplete, start again"},
		"another's": {tape{ends: status.Error(codes.ResourceExhausted, "another backup is under way")}, "another backup is under way"},
		"nonsense":  {tape{size: 4, parts: []string{"ab", "cd"}}, "is of no use: history is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serveControl(t, &c.from)
			dir := folder(t, map[string]string{"copy.db": "the last one"})
			code, out, errors := hdsd(t, "backup", filepath.Join(dir, "copy.db"), "--server", address)
			if code != exitFailed || out != "" || !strings.Contains(errors, c.says) {
				t.Errorf("exit status %d, %q, %s", code, out, errors)
			}
			left, err := os.ReadFile(filepath.Join(dir, "copy.db"))
			if got := names(t, dir); err != nil || len(got) != 1 || string(left) != "the last one" {
				t.Errorf("there is %v: %q, %v", got, left, err)
			}
		})
	}
}

// TestBackupOfADamagedHistory: a copy with bad rows is kept, beside the good
// one from before, and the command fails.
func TestBackupOfADamagedHistory(t *testing.T) {
	dir := folder(t, map[string]string{"copy.db": "the last one"})
	record(t, dir, 300)
	whole, err := os.ReadFile(filepath.Join(dir, "data", "hdsd.db"))
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(whole, []byte("test"), []byte("rest"), 1) // a reason
	address := serveControl(t, &tape{size: int64(len(bad)), parts: []string{string(bad)}})
	path := filepath.Join(dir, "copy.db")
	code, out, errors := hdsd(t, "backup", path, "--server", address)
	if code != exitFailed || !strings.HasPrefix(out, path+".damaged: ") || !strings.Contains(errors, "is damaged, and so is its copy") {
		t.Fatalf("exit status %d, %q, %s", code, out, errors)
	}
	if left, err := os.ReadFile(path); string(left) != "the last one" {
		t.Errorf("%q, %v", left, err)
	}
	restored := t.TempDir()
	code, _, errors = hdsd(t, "restore", path+".damaged", "--data-dir", restored)
	if code != exitFailed || !strings.Contains(errors, "--damaged restores it anyway") || len(names(t, restored)) != 0 {
		t.Errorf("exit status %d, %s", code, errors)
	}
	code, out, errors = hdsd(t, "restore", path+".damaged", "--data-dir", restored, "--damaged")
	if code != exitDone || !strings.Contains(out, "left out of answers") {
		t.Errorf("exit status %d, %s, %s", code, out, errors)
	}
}

func serveControl(t *testing.T, control hdsdv1.ControlServer) (address string) {
	t.Helper()
	return serveOn(t, func(server *grpc.Server) { hdsdv1.RegisterControlServer(server, control) })
}

func TestWrongBackups(t *testing.T) {
	dir := t.TempDir()
	for line, want := range map[string]string{
		"backup":                         "one argument, FILE",
		"backup a b":                     "was given 2",
		"backup a --tls-key y":           "--tls-ca",
		"restore -c x":                   "one argument, FILE",
		"restore a":                      "either --config FILE or --data-dir DIR",
		"restore a -c x --data-dir y":    "either --config FILE or --data-dir DIR",
		"backup a --server x":            "want HOST:PORT",
		"backup a --retries 3":           "--retries",
		"restore a --data-dir y --force": "--force",
	} {
		code, out, errors := hdsd(t, strings.Fields(line)...)
		if code != exitUsage || out != "" || !strings.Contains(errors, want) {
			t.Errorf("hdsd %s: exit status %d, %q, %q", line, code, out, errors)
		}
	}
	for line, want := range map[string]string{
		"backup " + dir + "/x.db --server 127.0.0.1:1":         "127.0.0.1:1",
		"backup " + dir + " --server 127.0.0.1:1":              "is no file: name one, or -",
		"backup " + dir + "/no/x.db --server 127.0.0.1:1":      dir + "/no/x.db cannot be written: no such file or directory\n",
		"restore " + dir + "/none.db --data-dir " + dir:        "none.db",
		"restore " + dir + "/none.db -c " + dir + "/none.yaml": "none.yaml",
	} {
		code, out, errors := hdsd(t, strings.Fields(line)...)
		if code != exitFailed || out != "" || !strings.Contains(errors, want) {
			t.Errorf("hdsd %s: exit status %d, %q, %q", line, code, out, errors)
		}
	}
	if left := names(t, dir); len(left) != 0 {
		t.Error("left behind:", left)
	}
}
