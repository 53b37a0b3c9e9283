package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// unbearable is the path of checks that no checker of this test lives with: whoever is sent one
// is killed, before it reads it.
const unbearable = "/unbearable"

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
	doomed  map[string]bool          // to be killed once they have started; guarded by mu
	deaths  []string                 // of those that were not asked to; guarded by mu
	failed  []error                  // guarded by mu
}

func supervise(t *testing.T, hdsd string, n int) *supervised {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &supervised{
		binary: envoy.Binary(t), end: cancel,
		running: map[string]*real.Process{}, asked: map[string]bool{}, doomed: map[string]bool{},
	}
	s.hds = RelayHDS(t, hdsd, s.read)
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
			s.note(ctx, id, err)
			continue
		}
		s.mu.Lock()
		s.running[id] = p
		doomed := s.doomed[id]
		delete(s.doomed, id)
		s.mu.Unlock()
		if doomed {
			p.Kill()
		}
		select {
		case <-ctx.Done():
			p.Kill()
			return
		case <-p.Exited():
			s.note(ctx, id, p.Err())
		}
	}
}

// read kills a checker that is sent what it does not live with.
func (s *supervised) read(id string, sent *healthv3.HealthCheckSpecifier) error {
	for _, c := range sent.GetClusterHealthChecks() {
		for _, check := range c.GetHealthChecks() {
			if check.GetHttpHealthCheck().GetPath() == unbearable {
				s.kill(id)
				return status.Error(codes.Unavailable, "the checker ended")
			}
		}
	}
	return nil
}

// kill kills a checker, at once or when it has started.
func (s *supervised) kill(id string) {
	s.mu.Lock()
	p := s.running[id]
	s.doomed[id] = p == nil || !p.Alive()
	s.mu.Unlock()
	if p != nil {
		p.Kill()
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

// TestAnUnknownCrashBugCostsAtMostTwoEnvoys has a change after which whoever gets it ends,
// among good ones, in one edit of a file.
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
	c.Start()
	fleet := supervise(t, c.GRPC, 5)
	c.AwaitAllHealthy("web", addresses, nil)
	c.AwaitAllHealthy("edge", addresses[:2], nil)

	c.SetClusters(file(unbearable, "/healthz", 4))
	quarantined := func() bool {
		all := c.Clusters()["edge"].Quarantined
		return len(all) == 1 && strings.Contains(all[0].Reason, "blocked: ")
	}
	envoy.Eventually(t, Patience, "the change to be blocked", quarantined)
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
	proven := c.Metric("hdsd_canary_proven_total")
	c.SetClusters(file(unbearable, "/other", 4))
	for i := range 5 {
		id := fmt.Sprintf("checker-%d", i+1)
		fleet.restart(t, id)
		envoy.Eventually(t, Patience, "the next to be lost", func() bool { return strings.Count(c.Logs(), `"event":"checker_lost"`) > len(deaths)+i })
		envoy.Eventually(t, Patience, id+" to be back", func() bool { return c.Checkers()[id].Connected })
	}
	// The four have the same check: what is proven in one needs no trial in the others.
	envoy.Eventually(t, Patience, "the change to reach all", func() bool {
		return c.Metric("hdsd_canary_proven_total") > proven && everywhere()
	})
	c.AwaitSynced(5)
	for name, cluster := range c.Clusters() {
		if len(cluster.Quarantined) > 0 != (name == "edge") {
			t.Errorf("quarantine of %s: %v", name, cluster.Quarantined)
		}
	}

	// A restart of hdsd.
	c.Terminate()
	c.Start()
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
