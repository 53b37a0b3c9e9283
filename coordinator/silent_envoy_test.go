package coordinator

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	"hdsd/config"
	"hdsd/envoy/specifier"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// spoiler gives one checker what it silently rejects, past the allow-list.
type spoiler struct {
	checkerServer
	victim string
}

func (s spoiler) Assign(id string, spec *specifier.Specifier) {
	if id == s.victim {
		spoiled := *spec
		spoiled.Clusters = slices.Clone(spec.Clusters)
		for i := range spoiled.Clusters {
			spoiled.Clusters[i].Head = proto.CloneOf(spec.Clusters[i].Head)
			spoil(spoiled.Clusters[i].Head)
		}
		spec = &spoiled
	}
	s.checkerServer.Assign(id, spec)
}

func spoil(c *healthv3.ClusterHealthCheck) {
	for _, check := range c.GetHealthChecks() {
		check.GetHttpHealthCheck().Method = corev3.RequestMethod_CONNECT
	}
}

const envoyPatience = 60 * time.Second

func TestEnvoyRejectsFirstSpecifier(t *testing.T) {
	up, err := upstream.Start(t.Context(), upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	c := newSpoiled(t, up.Addr(), "envoy-2")
	start := func(id string) *envoy.Process {
		return envoy.StartChecker(t, envoy.Checker{ID: id, HDS: c.GRPCAddress()})
	}
	start("envoy-1")
	b := c.query
	state := func(id string) api.Checker {
		all, err := b.Checkers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all {
			if k.ID == id {
				return k
			}
		}
		return api.Checker{}
	}
	healthy := func() bool {
		found, _, err := b.Endpoints(t.Context(), api.EndpointQuery{Limit: 1})
		return err == nil && len(found) == 1 && found[0].Verdict.Status.Up()
	}
	envoy.Eventually(t, envoyPatience, "a verdict", healthy)
	envoy.Eventually(t, envoyPatience, "the cluster to be tried", func() bool {
		trials := 1
		return c.core.inspect(t.Context(), func() { trials = c.core.Rollout.Trials() }) == nil && trials == 0
	})

	victim := start("envoy-2")
	envoy.Eventually(t, envoyPatience, "the silent one to be found out and to be left without work", func() bool {
		k := state("envoy-2")
		return k.Connected && !k.Trusted && k.DistrustReason != "" && k.AssignedEndpoints == 0
	})
	stats := victim.Stats(t, `hds_delegate\.`)
	if stats["hds_delegate.errors"] == 0 || stats["hds_delegate.requests"] != 1 {
		t.Errorf("the Envoy did something else than to reject one specifier: %v", stats)
	}
	if k := state("envoy-1"); !k.Trusted || k.AssignedEndpoints != 1 || !victim.Alive() || !healthy() {
		t.Errorf("its neighbour is %+v", k)
	}
	victim.Kill()
	c.setVictim("")
	start("envoy-2")
	envoy.Eventually(t, envoyPatience, "it to work once what silences it is gone", func() bool {
		k := state("envoy-2")
		return k.Trusted && k.AssignedEndpoints == 1 && k.Specifier == "SYNCED"
	})
}

// spoiled is a running coordinator with a spoiler.
type spoiled struct{ *Coordinator }

// setVictim chooses whom to spoil.
func (s spoiled) setVictim(id string) {
	_ = s.core.inspect(context.Background(), func() { s.core.hds = spoiler{s.hds, id} })
}

func newSpoiled(t *testing.T, address, victim string) spoiled {
	t.Helper()
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"hdsd.yaml": `
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
assignment: {settle: 0.2s, reconnect_grace: 0.5s}
reporting: {interval: 0.25s}
sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]`,
		"clusters.yaml": `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STATIC
  health_checks: [{timeout: 0.25s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /}}]
  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: ` + host + `, port_value: ` + port + `}}}}]}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	if loaded == nil {
		t.Fatal(problems)
	}
	c, err := New(t.Context(), loaded, Options{Log: zerolog.New(io.Discard)})
	if err != nil {
		t.Fatal(err)
	}
	c.core.hds = spoiler{c.hds, victim}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	t.Cleanup(func() {
		c.Close() //nolint:errcheck // Run says it
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return spoiled{c}
}
