package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const goodClusters = `resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: plain
  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
`

// TestHangupReadsTheConfigurationAgain runs serve as the command does, and
// hangs up on this very process.
func TestHangupReadsTheConfigurationAgain(t *testing.T) {
	text := goodConfig + "grpc: {address: \"127.0.0.1:0\"}\nhttp: {address: \"127.0.0.1:0\"}\n"
	dir := folder(t, map[string]string{"hdsd.yaml": text, "clusters.yaml": goodClusters})
	path := filepath.Join(dir, "hdsd.yaml")
	log, to := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-c", path}, to, to)
		to.Close()
	}()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(log); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	await := func(event string, more ...string) {
		t.Helper()
		patience := time.After(20 * time.Second)
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("it ended before %q", event)
				}
				if strings.Contains(line, `"event":"`+event+`"`) {
					for _, want := range more {
						if !strings.Contains(line, want) {
							t.Errorf("%s without %q: %s", event, want, line)
						}
					}
					return
				}
			case <-patience:
				t.Fatalf("waited in vain for %q", event)
			}
		}
	}
	hangup := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	await("serving")
	hangup(text + "history: {retention: 3600s}\n")
	await("reloaded")
	hangup(text + "nonsense: 1\n")
	await("config_problem", "hdsd.yaml:4: ", "nonsense")
	await("reload_refused")
	hangup(text + "node_id: other\n")
	await("restart_needed", "node_id")
	await("reloaded")
	stop()
	await("stopped")
	if status := <-ended; status != exitDone {
		t.Errorf("exit status %d", status)
	}
	for range lines { // to its end
	}
}
