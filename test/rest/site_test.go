package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/check"
	"hdsd/config"
	"hdsd/coordinator"
	"hdsd/health"
	"hdsd/test/envoy"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take on a busy machine.
const patience = 60 * time.Second

const configuration = `
node_id: hdsd-test
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
assignment: {settle: 0.05s, reconnect_grace: 60s}
reporting: {interval: 0.05s}
sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]
`

// site is a coordinator that runs inside the test.
type site struct {
	*coordinator.Coordinator
	t        testing.TB
	dir      string
	document *Document
	client   *http.Client
}

func newSite(t testing.TB, clusters ...string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), document: Load(t), client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	s.say(clusters...)
	s.write("hdsd.yaml", configuration)
	c, problems := config.Load(filepath.Join(s.dir, "hdsd.yaml"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	built, err := coordinator.New(t.Context(), c, coordinator.Options{Log: zerolog.New(io.Discard)})
	if err != nil {
		t.Fatal(err)
	}
	s.Coordinator = built
	ended := make(chan error, 1)
	go func() { ended <- built.Run(context.Background()) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := built.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// say puts another cluster file in place.
func (s *site) say(clusters ...string) {
	s.t.Helper()
	s.write("clusters.yaml", "resources:\n"+strings.Join(clusters, ""))
}

func (s *site) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

// checker runs the built-in checker until stop is called or the test ends.
func (s *site) checker(id string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// It ends with ctx's error.
		_ = check.Run(ctx, check.Options{Server: s.GRPCAddress(), NodeID: id, Locality: health.Locality{Zone: id}, Log: zerolog.Nop()})
	}()
	stop = func() { cancel(); <-done }
	s.t.Cleanup(stop)
	return stop
}

func (s *site) dial() *grpc.ClientConn {
	s.t.Helper()
	connection, err := grpc.NewClient(s.GRPCAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { connection.Close() })
	return connection
}

func (s *site) eventually(what string, done func() bool) {
	s.t.Helper()
	envoy.Eventually(s.t, patience, what, done)
}

// upstream answers health checks with a status.
func upstream(t testing.TB, status int) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

const (
	httpCheck = `{timeout: 1s, interval: 0.05s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}`
	tcpCheck  = `{timeout: 1s, interval: 0.05s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}`
)

// static writes a cluster whose endpoints are in the zones a, b and so on.
func static(name, check string, addresses ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: %s
  type: STATIC
  connect_timeout: 1s
  health_checks: [%s]
  load_assignment:
    cluster_name: %s
    endpoints:
`, name, check, name)
	for i, address := range addresses {
		at := strings.LastIndexByte(address, ':')
		host, port := strings.Trim(address[:at], "[]"), address[at+1:]
		fmt.Fprintf(&b, "    - locality: {zone: %c}\n      lb_endpoints: [{endpoint: {address: {socket_address: {address: %q, port_value: %s}}}}]\n", 'a'+i, host, port)
	}
	return b.String()
}
