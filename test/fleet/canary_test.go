package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/rs/zerolog"

	"hdsd/config"
	"hdsd/coordinator"
	"hdsd/health"
	real "hdsd/internal/demo/envoy"
	"hdsd/internal/demo/upstream"
	"hdsd/test/envoy"
)

// deadly is the path of checks that are turned into what ends an Envoy.
const deadly = "/deadly"

// plant is a mistake in the rules: statuses that no Envoy lives with pass.
func plant(_ string, checks []*corev3.HealthCheck) {
	for _, check := range checks {
		if h := check.GetHttpHealthCheck(); h.GetPath() == deadly {
			h.ExpectedStatuses = []*typev3.Int64Range{{Start: 700, End: 701}}
		}
	}
}

// serveHere runs hdsd in this process, with the mistake planted, until the end
// of the test or the call of stop.
func (c *Coordinator) serveHere() (stop func()) {
	c.t.Helper()
	loaded, problems := config.Load(filepath.Join(c.Dir, "hdsd.yaml"))
	if loaded == nil {
		c.t.Fatal(problems)
	}
	built, err := coordinator.New(c.t.Context(), loaded, coordinator.Options{Log: zerolog.New(&c.logs).With().Timestamp().Logger(), Forge: plant})
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- built.Run(context.Background()) }()
	stop = sync.OnceFunc(func() {
		_ = built.Close() // Run says it
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(stop)
	return stop
}

// supervised is a fleet of real checkers that are started again when they end,
// as a supervisor does.
type supervised struct {
	binary string
	hds    string
	end    context.CancelFunc
	owned  sync.WaitGroup

	mu      sync.Mutex
	running map[string]*real.Process // guarded by mu
	asked   map[string]bool          // to end; guarded by mu
	deaths  []string                 // of those that were not asked to; guarded by mu
	failed  []error                  // guarded by mu
}

func supervise(t *testing.T, hds string, n int) *supervised {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &supervised{
		binary: envoy.Binary(t), hds: hds, end: cancel,
		running: map[string]*real.Process{}, asked: map[string]bool{},
	}
	for i := range n {
		s.owned.Go(func() { s.keep(ctx, fmt.Sprintf("checker-%d", i+1), string(rune('a'+i%3))) })
	}
	t.Cleanup(func() {
		s.end()
		s.owned.Wait()
		for _, err := range s.failed {
			t.Error(err)
		}
	})
	return s
}

// keep runs a checker, and another when it has ended.
func (s *supervised) keep(ctx context.Context, id, zone string) {
	for ctx.Err() == nil {
		p, err := real.StartChecker(ctx, real.Checker{Binary: s.binary, ID: id, HDS: s.hds, Locality: health.Locality{Region: "eu", Zone: zone}})
		if err != nil {
			// It may have been ended while it started, by what it was sent.
			s.note(ctx, id, err)
			continue
		}
		s.mu.Lock()
		s.running[id] = p
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			p.Kill()
			return
		case <-p.Exited():
			s.note(ctx, id, p.Err())
		}
	}
}

func (s *supervised) note(ctx context.Context, id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil && !s.asked[id] {
		s.deaths = append(s.deaths, fmt.Sprintf("%s: %v", id, err))
	}
	s.asked[id] = false
}

// restart has a checker end in good order.
func (s *supervised) restart(t *testing.T, id string) {
	t.Helper()
	s.mu.Lock()
	p := s.running[id]
	s.asked[id] = true
	s.mu.Unlock()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func (s *supervised) dead() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths
}

// TestAnUnknownCrashBugCostsAtMostTwoEnvoys has a change that ends whoever
// gets it, among good ones, in one edit of a file.
func TestAnUnknownCrashBugCostsAtMostTwoEnvoys(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 5, upstream.Options{})
	addresses := Addresses(ups)
	file := func(edgePath, goodPath string, good int) string {
		check := func(path string) string { return strings.ReplaceAll(CheckHTTP, "/healthz", path) }
		clusters := []string{StaticCluster("web", CheckHTTP, addresses), StaticCluster("edge", check(edgePath), addresses[:2])}
		for i := range good {
			clusters = append(clusters, StaticCluster(fmt.Sprint("good-", i+1), check(goodPath), addresses[i+1:i+2]))
		}
		return ClusterFile(clusters...)
	}
	c := Prepare(t, file("/healthz", "/healthz", 0), FastReports)
	stop := c.serveHere()
	fleet := supervise(t, c.GRPC, 5)
	c.AwaitAllHealthy("web", addresses, nil)
	c.AwaitAllHealthy("edge", addresses[:2], nil)

	c.SetClusters(file(deadly, "/healthz", 4))
	quarantined := func() bool {
		all := c.Clusters()["edge"].Quarantined
		return len(all) == 1 && strings.Contains(all[0].Reason, "blocked: ")
	}
	envoy.Eventually(t, Patience, "the killer to be blocked", quarantined)
	everywhere := func() bool {
		for i := range 4 {
			good := c.Endpoints(fmt.Sprint("good-", i+1))[addresses[i+1]]
			if good.Health != "HEALTHY" || len(voters(good, "HEALTHY")) != 3 {
				return false
			}
		}
		return true
	}
	envoy.Eventually(t, Patience, "the good ones to be healthy by three checkers", everywhere)
	// hdsd sees a stream end before the process that had it is gone.
	lost := strings.Count(c.Clusters()["edge"].Quarantined[0].Reason, " (at ")
	envoy.Eventually(t, Patience, "the Envoys that hdsd lost to end", func() bool { return len(fleet.dead()) >= lost })
	deaths := fleet.dead()
	if len(deaths) == 0 || len(deaths) > 2 {
		t.Errorf("Envoys that ended: %q; want one or two", deaths)
	}
	// What it was before stays in use.
	set(t, ups[0], upstream.Status(500))
	c.AwaitHealth("edge", addresses[0], "UNHEALTHY")
	set(t, ups[0], upstream.Healthy())
	c.AwaitHealth("edge", addresses[0], "HEALTHY")
	t.Logf("Envoys that ended: %q; %s", deaths, c.Clusters()["edge"].Quarantined[0].Reason)

	// A rolling restart, with a change under way.
	c.SetClusters(file(deadly, "/other", 4))
	for i := range 5 {
		id := fmt.Sprintf("checker-%d", i+1)
		fleet.restart(t, id)
		envoy.Eventually(t, Patience, "the next to be lost", func() bool { return strings.Count(c.Logs(), `"event":"checker_lost"`) > len(deaths)+i })
		envoy.Eventually(t, Patience, id+" to be back", func() bool { return c.Checkers()[id].Connected })
	}
	// The four have the same check: what is proven in one needs no trial in the others.
	envoy.Eventually(t, Patience, "the change to reach all", func() bool {
		return strings.Contains(c.Logs(), `"event":"canary_proven","cluster":"good-`) && everywhere()
	})
	c.AwaitSynced(5)
	for name, cluster := range c.Clusters() {
		if len(cluster.Quarantined) > 0 != (name == "edge") {
			t.Errorf("quarantine of %s: %v", name, cluster.Quarantined)
		}
	}

	// A restart of hdsd.
	stop()
	c.serveHere()
	c.AwaitAllHealthy("web", addresses, nil)
	c.AwaitSynced(5)
	if !quarantined() {
		t.Errorf("after a restart of hdsd: %v", c.Clusters()["edge"].Quarantined)
	}
	if now := fleet.dead(); len(now) != len(deaths) {
		t.Errorf("Envoys that ended: %q, before the rolling restart %q", now, deaths)
	}
	for _, name := range []string{"web", "edge"} {
		for _, change := range c.Transitions(name) {
			if change.From != "UNKNOWN" && change.Address != addresses[0] {
				t.Errorf("a change that its upstream did not make: %+v", change)
			}
		}
	}
}
