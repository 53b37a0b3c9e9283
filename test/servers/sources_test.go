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
	for _, kind := range []string{"GRPC", "DELTA_GRPC", "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC"} {
		t.Run("go-control-plane "+kind, func(t *testing.T) {
			address := envoy.FreeAddress(t)
			exercise(t, &goServer{t: t, address: address}, kind, address, "")
		})
		if os.Getenv("SERVERS") != "java" {
			continue
		}
		t.Run("java-control-plane "+kind, func(t *testing.T) {
			address, more := envoy.FreeAddress(t), ""
			if strings.Contains(kind, "DELTA") {
				more = "first_delta_response_is_complete: true"
			}
			exercise(t, newJavaServer(t, address), kind, address, more)
		})
	}
}

func exercise(t *testing.T, s server, kind, address, more string) {
	t.Helper()
	up, down := upstream(t), upstream(t)
	s.start("1", ports{"a": port(up), "b": port(down)})
	p := serve(t, kind, address, more)
	p.awaits("endpoints to arrive healthy", map[string]string{"a": "HEALTHY", "b": "HEALTHY"})

	asked := s.requests()
	down.Close()
	p.awaits("health to be overlaid", map[string]string{"a": "HEALTHY", "b": "UNHEALTHY"})
	if now := s.requests(); now != asked {
		t.Errorf("the idle server was asked %d times", now-asked)
	}

	s.kill()
	t.Cleanup(func() { s.kill() })
	s.start("1", ports{"a": port(up), "c": port(up)})
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

// plane is hdsd with one checker.
type plane struct {
	t    *testing.T
	http string
}

// serve runs hdsd with one source.
func serve(t *testing.T, kind, address, more string) *plane {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hdsd.yaml")
	text := fmt.Sprintf(`grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
data_dir: %q
sources:
- name: server
  hold_shrinkage: {share: 1}
  %s
  config_source:
    api_config_source:
      api_type: %s
      transport_api_version: V3
      grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: server}}]
default_health_checks:
- cluster_name_glob: "*"
  health_checks: [{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /}}]
`, t.TempDir(), more, kind, address)
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
	return &plane{t: t, http: built.HTTPAddress()}
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
		got := map[string]string{}
		for _, c := range p.fetch("clusters") {
			got[c.Name] = "nothing"
		}
		for _, a := range p.fetch("endpoints") {
			for _, l := range a.Endpoints {
				for _, e := range l.LbEndpoints {
					got[a.ClusterName] = e.HealthStatus
				}
			}
		}
		last = fmt.Sprint(got)
		return last == fmt.Sprint(want)
	})
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

func (p *plane) fetch(kind string) []shown {
	names := ""
	if kind == "endpoints" {
		names = `, "resource_names": ["a", "b", "c"]`
	}
	answer, err := http.Post("http://"+p.http+"/v3/discovery:"+kind, "application/json", strings.NewReader(`{"node": {"id": "plane"}`+names+`}`)) //nolint:noctx // it is local
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
