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

const anyAddresses = "grpc: {address: \"127.0.0.1:0\"}\nhttp: {address: \"127.0.0.1:0\"}\n"

// loggedServe is a coordinator run as the command does, and its log.
type loggedServe struct {
	t     *testing.T
	stop  context.CancelFunc
	lines chan string
	ended chan int
}

// serveLogged serves a configuration, until stop or the end of the test.
func serveLogged(t *testing.T, path string) *loggedServe {
	t.Helper()
	log, to := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	s := &loggedServe{t: t, stop: stop, lines: make(chan string, 1000), ended: make(chan int, 1)}
	go func() {
		s.ended <- run(ctx, []string{"serve", "-c", path}, to, to)
		to.Close()
	}()
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(log); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		stop()
		for range s.lines { // to its end
		}
	})
	return s
}

// await reads the log up to an event, whose line must hold more.
func (s *loggedServe) await(event string, more ...string) (line string) {
	s.t.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("it ended before %q", event)
			}
			if strings.Contains(line, `"event":"`+event+`"`) {
				for _, want := range more {
					if !strings.Contains(line, want) {
						s.t.Errorf("%s without %q: %s", event, want, line)
					}
				}
				return line
			}
		case <-patience:
			s.t.Fatalf("waited in vain for %q", event)
		}
	}
}

// end stops the coordinator, which ends as it should.
func (s *loggedServe) end() {
	s.t.Helper()
	s.stop()
	s.await("stopped")
	if status := <-s.ended; status != exitDone {
		s.t.Errorf("exit status %d", status)
	}
}

// TestHangupReadsTheConfigurationAgain runs serve as the command does, and
// hangs up on this very process.
func TestHangupReadsTheConfigurationAgain(t *testing.T) {
	text := goodConfig + anyAddresses
	dir := folder(t, map[string]string{"hdsd.yaml": text, "clusters.yaml": goodClusters})
	path := filepath.Join(dir, "hdsd.yaml")
	s := serveLogged(t, path)
	hangup := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	s.await("serving")
	hangup(text + "history: {retention: 3600s}\n")
	s.await("reloaded")
	hangup(text + "nonsense: 1\n")
	s.await("config_problem", "hdsd.yaml:4: ", "nonsense")
	s.await("reload_refused")
	hangup(text + "node_id: other\n")
	s.await("restart_needed", "node_id")
	s.await("reloaded")
	s.end()
}
