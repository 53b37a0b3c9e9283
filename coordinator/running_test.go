package coordinator_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/check"
	"hdsd/config"
	"hdsd/coordinator"
	configv1 "hdsd/gen/hdsd/config/v1"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/test/envoy"
)

// No test leaves a goroutine behind. Four run side by side, unless the command
// line says otherwise: some do nothing but wait for what hdsd allows a client.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is the longest time for any step on a busy machine.
const patience = time.Minute

// site is a coordinator with its files.
type site struct {
	*coordinator.Coordinator
	t     testing.TB
	dir   string
	ended chan error // of Run
	stop  context.CancelFunc
}

const quick = `
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
assignment: {settle: 0.05s, reconnect_grace: 0.2s}
reporting: {interval: 0.05s}
sources:
- {name: local, config_source: {path_config_source: {path: clusters.yaml}}}
`

// configuration writes a configuration with its clusters and reads it.
func configuration(t testing.TB, dir, text, clusters string) *configv1.Config {
	t.Helper()
	move(t, dir, "clusters.yaml", "resources:\n"+clusters)
	move(t, dir, "hdsd.yaml", text)
	c, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	for _, p := range problems {
		if !p.Warning || p.Field != "access.mode" && p.Field != "grpc.insecure" { // what some tests are about
			t.Error(p)
		}
	}
	if c == nil {
		t.FailNow()
	}
	return c
}

// move puts a file in place by an atomic move.
func move(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// newSite makes a coordinator and runs it.
func newSite(t testing.TB, dir, text, clusters string) *site {
	t.Helper()
	log := &protocol{}
	built, err := coordinator.New(t.Context(), configuration(t, dir, text, clusters), coordinator.Options{Log: zerolog.New(log).With().Timestamp().Logger()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &site{Coordinator: built, t: t, dir: dir, ended: make(chan error, 1), stop: cancel}
	go func() { s.ended <- built.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := built.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("hdsd logged at last:\n%s", log)
		}
	})
	return s
}

// protocol keeps the last lines of a log.
type protocol struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer.
func (p *protocol) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines[max(0, len(p.lines)-200):], string(line))
	return len(line), nil
}

func (p *protocol) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "")
}

func (s *site) eventually(what string, done func() bool) {
	s.t.Helper()
	envoy.Eventually(s.t, patience, what, done)
}

// get asks over REST; what it gives is empty where nobody answers.
func (s *site) get(path string) (int, string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Get("http://" + s.HTTPAddress() + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(text)
}

// healthOf is what REST says of an address.
func (s *site) healthOf(cluster, address string) string {
	code, text := s.get("/v1/endpoints?cluster=" + cluster + "&address=" + address)
	var answer struct {
		Endpoints []struct{ Health string }
	}
	if code != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil || len(answer.Endpoints) != 1 {
		return ""
	}
	return answer.Endpoints[0].Health
}

func (s *site) ready() {
	s.t.Helper()
	s.eventually("readiness", func() bool { code, _ := s.get("/readyz"); return code == http.StatusOK })
}

// dial connects to the gRPC address, in plaintext unless told otherwise.
func (s *site) dial(options ...grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	connection, err := grpc.NewClient(s.GRPCAddress(), options...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { connection.Close() })
	return connection
}

// checker runs the built-in checker.
func (s *site) checker(id string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = check.Run(ctx, check.Options{Server: s.GRPCAddress(), NodeID: id, Locality: health.Locality{Zone: id}, Log: zerolog.Nop()})
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

// upstream answers health checks with a status that can be changed.
func upstream(t testing.TB) (address string, status *atomic.Int32) {
	status = &atomic.Int32{}
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), status
}

// static writes a cluster.
func static(name string, addresses ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: %s
  type: STATIC
  connect_timeout: 1s
  health_checks: [{timeout: 1s, interval: 0.05s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}]
  load_assignment:
    cluster_name: %s
    endpoints:
    - lb_endpoints:
`, name, name)
	for _, address := range addresses {
		host, port, _ := strings.Cut(address, ":")
		fmt.Fprintf(&b, "      - {endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}\n", host, port)
	}
	return b.String()
}

func TestStartToStop(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address))
	s.ready()
	s.checker("c1")
	s.eventually("a healthy endpoint", func() bool { return s.healthOf("web", address) == "HEALTHY" })
	status.Store(http.StatusServiceUnavailable)
	s.eventually("an unhealthy endpoint", func() bool { return s.healthOf("web", address) == "UNHEALTHY" })

	query := hdsdv1.NewQueryClient(s.dial())
	s.eventually("two transitions", func() bool {
		answer, err := query.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{Cluster: "web"})
		return err == nil && len(answer.GetTransitions()) == 2
	})
	clusters, err := query.ListClusters(t.Context(), &hdsdv1.ListClustersRequest{})
	if err != nil || len(clusters.GetClusters()) != 1 || clusters.GetClusters()[0].GetUnhealthy() != 1 {
		t.Errorf("clusters: %v, %v", clusters, err)
	}
	s.eventually("the checker to follow what it was sent", func() bool {
		answer, err := query.ListCheckers(t.Context(), &hdsdv1.ListCheckersRequest{})
		return err == nil && len(answer.GetCheckers()) == 1 && answer.GetCheckers()[0].GetSpecifier() == "SYNCED"
	})
	if code, _ := s.get("/v1/endpoints?cluster=nowhere"); code != http.StatusNotFound {
		t.Errorf("an unknown cluster gives %d", code)
	}
	for path, want := range map[string]string{"/healthz": "alive", "/readyz": "ready", "/metrics": `hdsd_transitions_total{to="UNHEALTHY"} 1`} {
		if code, text := s.get(path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}

	move(t, s.dir, "clusters.yaml", "resources:\n"+static("api", address))
	s.eventually("the other cluster", func() bool { return s.healthOf("api", address) == "UNHEALTHY" })
	if code, text := s.get("/v1/endpoints?cluster=web"); code != http.StatusOK || strings.Contains(text, address) {
		t.Errorf("a cluster that was: %d %s", code, text)
	}

	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	again := newSite(t, s.dir, quick, static("api", address))
	again.ready()
	if got := again.healthOf("api", address); got != "UNHEALTHY" {
		t.Errorf("right after the restart the endpoint is %s", got)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	dir := t.TempDir()
	s := newSite(t, dir, quick, static("web", address))
	s.ready()
	s.checker("c1")
	s.eventually("a healthy endpoint", func() bool { return s.healthOf("web", address) == "HEALTHY" })

	more := quick + "- {name: more, config_source: {path_config_source: {path: more.yaml}}}\n"
	move(t, dir, "more.yaml", "resources:\n"+static("api", address))
	restart, err := s.Reload(configuration(t, dir, more, static("web", address)))
	if err != nil || len(restart) > 0 {
		t.Errorf("Reload: %v, %v", restart, err)
	}
	s.eventually("the cluster of another source", func() bool { return s.healthOf("api", address) == "HEALTHY" })
	if got := s.healthOf("web", address); got != "HEALTHY" {
		t.Errorf("web is %s after a reload", got)
	}

	// A source that cannot be read: nothing changes, not even what could.
	move(t, dir, "more.yaml", "resources: [")
	if _, err := s.Reload(configuration(t, dir, more, static("else", address))); err == nil || !strings.Contains(err.Error(), "more.yaml:1") {
		t.Errorf("Reload of what cannot be read: %v", err)
	}
	if got := s.healthOf("api", address); got != "HEALTHY" {
		t.Errorf("api is %q after a reload that failed", got)
	}
	// What needs a restart is named, also the second time.
	slower := strings.Replace(quick, "interval: 0.05s", "interval: 2s", 1)
	for range 2 {
		restart, err = s.Reload(configuration(t, dir, slower, static("web", address)))
		if err != nil || len(restart) != 1 || restart[0] != "reporting.interval" {
			t.Errorf("Reload: %v, %v", restart, err)
		}
	}
	// The file of a source that stayed is still followed.
	move(t, dir, "clusters.yaml", "resources:\n"+static("last", address))
	s.eventually("the file to be followed", func() bool { return s.healthOf("last", address) == "HEALTHY" })
}

func TestTLSOnBothAddresses(t *testing.T) {
	t.Parallel()
	for _, mutual := range []bool{false, true} {
		t.Run(fmt.Sprintf("mutual=%v", mutual), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ca := newAuthority(t, dir)
			files := "{certificate_chain_file: server.pem, private_key_file: server.key"
			if mutual {
				files += ", client_ca_file: ca.pem"
			}
			secure := strings.ReplaceAll(quick, `"127.0.0.1:0"`, `"127.0.0.1:0", tls: `+files+"}")
			s := newSite(t, dir, secure, static("web", "127.0.0.1:1"))

			ask := func(shown bool) (overHTTP, overGRPC error) {
				trusted := ca.client(shown)
				client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}, Timeout: patience}
				answer, overHTTP := client.Get("https://" + s.HTTPAddress() + "/healthz")
				if overHTTP == nil {
					answer.Body.Close()
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, overGRPC = hdsdv1.NewQueryClient(s.dial(grpc.WithTransportCredentials(credentials.NewTLS(trusted)))).
					ListClusters(ctx, &hdsdv1.ListClustersRequest{})
				return overHTTP, overGRPC
			}
			s.eventually("an answer over TLS", func() bool { overHTTP, overGRPC := ask(true); return overHTTP == nil && overGRPC == nil })
			overHTTP, overGRPC := ask(false)
			if (overHTTP != nil) != mutual || (overGRPC != nil) != mutual {
				t.Errorf("without a client's certificate: HTTP %v, gRPC %v", overHTTP, overGRPC)
			}
			if code, _ := s.get("/healthz"); code == http.StatusOK {
				t.Error("plaintext is served")
			}
		})
	}
}
