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
	"syscall"
	"testing"
	"time"
)

// serveVariable makes this test the command serve with the configuration that it names.
const serveVariable = "HDSD_TEST_SERVE"

// TestServeAsAProcess is the child of serveProcess.
func TestServeAsAProcess(t *testing.T) {
	path := os.Getenv(serveVariable)
	if path == "" {
		t.Skip("it is only the process of another test")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
		stop()
	}()
	if status := run(ctx, []string{"serve", "-c", path}, os.Stderr, os.Stderr); status != exitDone {
		t.Errorf("exit status %d", status)
	}
}

// process is hdsd serve in a process of its own.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	address string // of gRPC
}

func serveProcess(t *testing.T, path string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0], "-test.run=^TestServeAsAProcess$", "-test.timeout=10m")}
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
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Event, GRPC string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "serving" {
			p.address = line.GRPC
			go func() { _, _ = io.Copy(io.Discard, log) }() // until the process ends
			return p
		}
	}
	t.Fatal("it does not serve")
	return nil
}

// end sends the process a signal, or asks it to stop if that is 0, and waits for it.
func (p *process) end(signal syscall.Signal) {
	if signal != 0 {
		_ = p.command.Process.Signal(signal) // it may have ended
	}
	p.stdin.Close()
	_ = p.command.Wait() // killed is as good
}

// checkUntil runs checkers in this process, until it is called.
func checkUntil(t *testing.T, address string, ids ...string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, id := range ids {
		running.Go(func() {
			_ = run(ctx, []string{"check", "--server", address, "--id", id, "--zone", id}, io.Discard, io.Discard)
		})
	}
	return func() { cancel(); running.Wait() }
}

// awaitReplay replays a recording that is being written, until it has a text.
func awaitReplay(t *testing.T, path, want string) (out string) {
	t.Helper()
	deadline, again := time.After(2*time.Minute), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	for {
		status, out, errors := hdsd(t, "replay", path, "-o", "json")
		if strings.Contains(out, want) {
			return out
		}
		select {
		case <-deadline:
			t.Fatalf("there is no %q: exit status %d\n%s%s", want, status, out, errors)
		case <-again.C:
		}
	}
}

// TestARunOfServeIsReplayed with real checks: while it is recorded, after kill -9, and after a stop.
func TestARunOfServeIsReplayed(t *testing.T) {
	var sick atomic.Bool
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
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
	stop := checkUntil(t, p.address, "a", "b", "c")
	awaitReplay(t, file, `"what":"UNKNOWN to HEALTHY"`)
	sick.Store(true)
	down := awaitReplay(t, file, `"what":"HEALTHY to UNHEALTHY"`)
	if !strings.Contains(down, `"kind":"health","cluster":"web","address":"`+address+`"`) || !strings.Contains(down, `checkers say UNHEALTHY`) {
		t.Errorf("the outage is shown as\n%s", down)
	}
	if code, _, errors := hdsd(t, "override", "drain", "web", address, "--reason", "power works", "--yes", "--server", p.address); code != exitDone {
		t.Fatal(errors)
	}
	awaitReplay(t, file, `"what":"set to DRAINING","reason":"power works`)
	p.end(syscall.SIGKILL)
	stop()
	wantReplayed(t, file, "the process was killed, or is still running")

	p = serveProcess(t, filepath.Join(dir, "hdsd.yaml")) // with the state of the process before
	stop = checkUntil(t, p.address, "a", "b", "c")
	sick.Store(false)
	if code, _, errors := hdsd(t, "override", "clear", "web", "--all", "--server", p.address); code != exitDone {
		t.Fatal(errors)
	}
	awaitReplay(t, file, `to HEALTHY"`)
	p.end(0)
	stop()
	wantReplayed(t, file+".previous", "the process was killed, or is still running")
	wantReplayed(t, file, "hdsd stopped")
}

// wantReplayed replays a whole recording, which ends for a reason.
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
