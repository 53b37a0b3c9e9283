package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveUntilEOF runs hdsd serve until the parent process closes the standard input.
func serveUntilEOF(path string) (status int) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return run(ctx, []string{"serve", "-c", path}, os.Stderr, os.Stderr)
}

// process is hdsd serve in a process of its own.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	address string // of gRPC
}

// serveProcess starts hdsd serve, and waits until it serves.
func serveProcess(t *testing.T, path string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0])}
	p.command.Env = append(os.Environ(), serveVariable+"="+path)
	log, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.command.StdinPipe(); err == nil {
		err = p.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Event, GRPC string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "serving" {
			p.address = line.GRPC
			go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the process
			return p
		}
	}
	t.Fatal("hdsd does not serve")
	return nil
}

// kill kills the process, unless it has ended, and waits for it.
func (p *process) kill() {
	_ = p.command.Process.Kill() // the process may have ended
	p.stdin.Close()
	_ = p.command.Wait() // reports the signal
}

// stop stops the process, and waits for it.
func (p *process) stop() error {
	p.stdin.Close()
	return p.command.Wait()
}

// startCheckers runs checkers in this process until the caller calls stop.
func startCheckers(t *testing.T, address string, ids ...string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, id := range ids {
		running.Go(func() {
			_ = run(ctx, []string{"check", "--server", address, "--id", id, "--zone", id}, io.Discard, io.Discard)
		})
	}
	return func() { cancel(); running.Wait() }
}

// awaitReplay replays a growing recording until the output has a text.
func awaitReplay(t *testing.T, path, want string) (out string) {
	t.Helper()
	deadline, ticker := time.After(2*time.Minute), time.NewTicker(100*time.Millisecond)
	defer ticker.Stop()
	for {
		status, out, errors := hdsd(t, "replay", path, "-o", "json")
		if strings.Contains(out, want) {
			return out
		}
		select {
		case <-deadline:
			t.Fatalf("there is no %q: exit status %d\n%s%s", want, status, out, errors)
		case <-ticker.C:
		}
	}
}

// TestReplayOfServe replays recordings of hdsd serve with real checks: growing ones, after kill -9 and after
// a stop.
func TestReplayOfServe(t *testing.T) {
	var failing atomic.Bool
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer upstream.Close()
	address := strings.TrimPrefix(upstream.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	dir := folder(t, map[string]string{
		"hdsd.yaml": goodConfig + anyAddresses + "recording: {file: events.hdsd}\nassignment: {settle: 0.5s}\nreporting: {interval: 0.1s}\n",
		"clusters.yaml": fmt.Sprintf(`resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STATIC
  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}
  health_checks:
  - timeout: 1s
    interval: 0.2s
    unhealthy_threshold: 1
    healthy_threshold: 1
    http_health_check: {path: "/ready?token=0123456789", request_headers_to_add: [{header: {key: authorization, value: "Bearer t0ken"}}]}
`, port),
	})
	file := filepath.Join(dir, "events.hdsd")
	p := serveProcess(t, filepath.Join(dir, "hdsd.yaml"))
	stop := startCheckers(t, p.address, "a", "b", "c")
	awaitReplay(t, file, `"what":"UNKNOWN to HEALTHY"`)
	failing.Store(true)
	outage := awaitReplay(t, file, `"what":"HEALTHY to UNHEALTHY"`)
	if !strings.Contains(outage, `"kind":"health","cluster":"web","address":"`+address+`"`) || !strings.Contains(outage, `checkers say UNHEALTHY`) {
		t.Errorf("the outage is shown as\n%s", outage)
	}
	if code, _, errors := hdsd(t, "override", "drain", "web", address, "--reason", "power works", "--yes", "--server", p.address); code != exitDone {
		t.Fatal(errors)
	}
	awaitReplay(t, file, `"what":"set to DRAINING","reason":"power works`)
	p.kill()
	stop()
	wantReplayed(t, file, "the process was killed, or is still running")

	p = serveProcess(t, filepath.Join(dir, "hdsd.yaml")) // with the state of the previous process
	stop = startCheckers(t, p.address, "a", "b", "c")
	failing.Store(false)
	if code, _, errors := hdsd(t, "override", "clear", "web", "--all", "--server", p.address); code != exitDone {
		t.Fatal(errors)
	}
	awaitReplay(t, file, `to HEALTHY"`)
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	stop()
	wantReplayed(t, file+".previous", "the process was killed, or is still running")
	wantReplayed(t, file, "hdsd stopped")
}

// wantReplayed replays a whole recording, and wants a reason of its end.
func wantReplayed(t *testing.T, file, reason string) {
	t.Helper()
	t.Setenv("COLUMNS", "80")
	status, out, errors := hdsd(t, "replay", file)
	if status != exitDone || !strings.Contains(out, " as recorded.\n") || !strings.Contains(out, "It ends: "+reason+".\n") || errors != "" {
		t.Errorf("exit status %d\n%s%s", status, out, errors)
	}
	for line := range strings.Lines(out) {
		if len(line) > 81 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil || bytes.Contains(written, []byte("t0ken")) {
		t.Errorf("the file has a secret, or cannot be read: %v", err)
	}
}
