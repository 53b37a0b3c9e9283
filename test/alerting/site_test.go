package alerting

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/check"
	"hdsd/config"
	"hdsd/coordinator"
	"hdsd/health"
	"hdsd/test/envoy"
)

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// site is a coordinator with one cluster and three checkers.
type site struct {
	*coordinator.Coordinator
	upstream string
	status   *atomic.Int32 // what the only endpoint answers
}

const clusters = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  connect_timeout: 1s
  health_checks: [{timeout: 1s, interval: 0.05s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]
  load_assignment:
    cluster_name: web
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]
`

// plain is an HTTP address without TLS.
const plain = `http: {address: "127.0.0.1:0"}
`

const settings = `grpc: {address: "127.0.0.1:0"}
assignment: {settle: 0.05s}
reporting: {interval: 0.05s}
sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]
`

// newSite runs a coordinator with more settings, and checkers.
func newSite(t testing.TB, more string, checkers ...string) *site {
	t.Helper()
	s := &site{status: &atomic.Int32{}}
	s.status.Store(http.StatusOK)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(s.status.Load())) }))
	t.Cleanup(upstream.Close)
	s.upstream = strings.TrimPrefix(upstream.URL, "http://")
	dir := t.TempDir()
	_, port, _ := strings.Cut(s.upstream, ":")
	for name, text := range map[string]string{"clusters.yaml": fmt.Sprintf(clusters, port), "hdsd.yaml": settings + more} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	if c == nil {
		t.Fatal(problems)
	}
	var err error
	if s.Coordinator, err = coordinator.New(t.Context(), c, coordinator.Options{Log: zerolog.New(io.Discard)}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, id := range checkers {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = check.Run(ctx, check.Options{Server: s.GRPCAddress(), NodeID: id, Locality: health.Locality{Zone: id}, Log: zerolog.Nop()})
		}()
		t.Cleanup(func() { cancel(); <-done })
	}
	return s
}

// scrape is what /metrics says.
func (s *site) scrape(t testing.TB) string { return fetch(t, "http://"+s.HTTPAddress()+"/metrics") }

// fetch gets a text; it is empty where nobody answers.
func fetch(t testing.TB, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	envoy.Eventually(t, patience, what, done)
}

// freeAddress is an address of loopback that nobody listens at.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
