package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/check"
	"hdsd/config"
	"hdsd/coordinator"
	"hdsd/test/envoy"
)

// patience is how long a change may take: a server that was killed is tried again after half a
// minute at most, and a JVM takes seconds to start.
const patience = 90 * time.Second

// TestSources: from each server, in each way, endpoints arrive and get health, an idle server
// is asked nothing, and one that was killed and has other content under the same version name
// is found again, without what it no longer has.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"GRPC", "DELTA_GRPC", "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC"} {
		t.Run("go-control-plane "+kind, func(t *testing.T) {
			t.Parallel()
			address := envoy.FreeAddress(t)
			exercise(t, &goServer{t: t, address: address}, "1", fromSource(kind, address, ""))
		})
		if os.Getenv("SERVERS") != "java" {
			continue
		}
		t.Run("java-control-plane "+kind, func(t *testing.T) {
			t.Parallel()
			address, more := envoy.FreeAddress(t), ""
			if strings.Contains(kind, "DELTA") {
				more = "first_delta_response_is_complete: true"
			}
			exercise(t, newJavaServer(t, address), "1", fromSource(kind, address, more))
		})
	}
}

// exercise has a server in front of hdsd. When it is started again, its content has a version.
func exercise(t *testing.T, s server, version string, run func(*testing.T) *plane) {
	t.Helper()
	up, first, second := upstream(t), upstream(t), upstream(t)
	s.start("1", ports{"a": port(up), "b": port(first), "d": port(second)})
	p := run(t)
	p.awaits("endpoints to arrive healthy", map[string]string{"a": "HEALTHY", "b": "HEALTHY", "d": "HEALTHY"})

	first.Close()
	p.awaits("health to be overlaid", map[string]string{"a": "HEALTHY", "b": "UNHEALTHY", "d": "HEALTHY"})
	asked := s.requests() // every response was answered before the flip went out
	second.Close()
	p.awaits("another flip", map[string]string{"a": "HEALTHY", "b": "UNHEALTHY", "d": "UNHEALTHY"})
	if now := s.requests(); now != asked {
		t.Errorf("the idle server was asked %d times", now-asked)
	}

	s.kill()
	t.Cleanup(func() { s.kill() })
	s.start(version, ports{"a": port(up), "c": port(up)})
	p.awaits("the other content to be found", map[string]string{"a": "HEALTHY", "c": "HEALTHY"})
}

func upstream(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	return s
}

func port(s *httptest.Server) int {
	var port int
	_, _ = fmt.Sscanf(s.URL, "http://127.0.0.1:%d", &port) // as httptest writes it
	return port
}

// plane is what data planes of an hdsd with one checker have.
type plane struct {
	t      *testing.T
	health func() map[string]string // by cluster: of its endpoint
}

// fromSource has a source of hdsd's at an address. Data planes poll.
func fromSource(kind, address, more string) func(*testing.T) *plane {
	text := fmt.Sprintf(`sources:
- name: server
  hold_shrinkage: {share: 1}
  %s
  config_source:
    api_config_source:
      api_type: %s
      transport_api_version: V3
      grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: server}}]
`, more, kind, address)
	return func(t *testing.T) *plane {
		t.Helper()
		built := serve(t, text)
		return &plane{t, func() map[string]string { return polled(built.HTTPAddress()) }}
	}
}

// serve runs hdsd and a checker.
func serve(t *testing.T, from string) *coordinator.Coordinator {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hdsd.yaml")
	text := fmt.Sprintf(`grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
data_dir: %q
%sdefault_health_checks:
- cluster_name_glob: "*"
  health_checks: [{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /}}]
`, t.TempDir(), from)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, problems := config.Load(path)
	if loaded == nil {
		t.Fatal(problems)
	}
	built, err := coordinator.New(t.Context(), loaded, coordinator.Options{Log: zerolog.New(io.Discard)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	run := func(what string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	run("hdsd", built.Run)
	run("checker", func(ctx context.Context) error {
		return check.Run(ctx, check.Options{Server: built.GRPCAddress(), NodeID: "checker", Log: zerolog.Nop()})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return built
}

// awaits waits until data planes get these clusters and no others, each with an endpoint of this
// health.
func (p *plane) awaits(what string, want map[string]string) {
	p.t.Helper()
	last := ""
	defer func() {
		if p.t.Failed() {
			p.t.Logf("data planes get %s", last)
		}
	}()
	envoy.Eventually(p.t, patience, what, func() bool {
		last = fmt.Sprint(p.health())
		return last == fmt.Sprint(want)
	})
}

// polled is what a data plane that polls hdsd gets.
func polled(address string) map[string]string {
	got := map[string]string{}
	for _, c := range fetch(address, "clusters") {
		got[c.Name] = "nothing"
	}
	for _, a := range fetch(address, "endpoints") {
		for _, l := range a.Endpoints {
			for _, e := range l.LbEndpoints {
				got[a.ClusterName] = e.HealthStatus
			}
		}
	}
	return got
}

// shown is what a test reads of a cluster or an assignment.
type shown struct {
	Name        string `json:"name"`
	ClusterName string `json:"clusterName"`
	Endpoints   []struct {
		LbEndpoints []struct {
			HealthStatus string `json:"healthStatus"`
		} `json:"lbEndpoints"`
	} `json:"endpoints"`
}

func fetch(address, kind string) []shown {
	names := ""
	if kind == "endpoints" {
		names = `, "resource_names": ["a", "b", "c", "d"]`
	}
	answer, err := http.Post("http://"+address+"/v3/discovery:"+kind, "application/json", strings.NewReader(`{"node": {"id": "plane"}`+names+`}`)) //nolint:noctx // it is local
	if err != nil {
		return nil // not ready yet
	}
	defer answer.Body.Close()
	var got struct {
		Resources []shown `json:"resources"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return nil
	}
	return got.Resources
}
