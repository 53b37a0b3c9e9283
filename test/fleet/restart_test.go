package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

func TestADyingCheckerTakesNothingOutOfRotation(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 6, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
	c.Start()
	checkers := Checkers(t, c, 4)
	c.AwaitAllHealthy("web", addresses, nil)

	checkers[0].Kill()
	envoy.Eventually(t, Patience, "the seat to be given up", func() bool { return len(c.Checkers()) == 3 })
	envoy.Eventually(t, Patience, "everything to be checked three times again", func() bool {
		sum := 0
		for _, k := range c.Checkers() {
			sum += k.AssignedEndpoints
		}
		return sum == 3*len(addresses)
	})
	set(t, ups[2], upstream.Status(500))
	c.AwaitHealth("web", ups[2].Addr(), "UNHEALTHY")
	set(t, ups[2], upstream.Healthy())
	c.AwaitHealth("web", ups[2].Addr(), "HEALTHY")
	for _, change := range c.Transitions("web") {
		if change.Address != ups[2].Addr() && change.From != "UNKNOWN" {
			t.Errorf("a change that its upstream did not make: %+v", change)
		}
	}
}

func TestTerminateDrains(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports)
	c.Start()
	Checkers(t, c, 3)
	planes := DataPlanes(t, c, "web")
	c.AwaitAllHealthy("web", Addresses(ups), planes)
	if status, took := c.Terminate(); status != 0 || took > 10*time.Second {
		t.Errorf("exit status %d after %v, want 0 within 10 s", status, took)
	}
	c.Start()
	for address, e := range c.Endpoints("web") {
		if e.Health != "HEALTHY" {
			t.Errorf("%s is %s right after the start", address, e.Health)
		}
	}
}

// TestKill9WithFlipsInFlight restarts hdsd by kill -9 while upstreams fail and
// recover, and looks at what a data plane and the history make of it.
func TestKill9WithFlipsInFlight(t *testing.T) {
	t.Parallel()
	const rounds = 4
	killRounds(t, rounds)
}

// killRounds is the test above with any number of rounds.
func killRounds(t testing.TB, rounds int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ups := Upstreams(t, 9, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
	c.Start()
	Checkers(t, c, 3)
	plane := DataPlanes(t, c, "web")[0]
	c.AwaitAllHealthy("web", addresses, []*envoy.Process{plane})

	steady, down, flipping := addresses[:5], ups[5], ups[6:]
	set(t, down, upstream.Status(500))
	c.AwaitHealth("web", down.Addr(), "UNHEALTHY")
	AwaitPlane(t, plane, "web", down.Addr(), "UNHEALTHY")
	envoy.Eventually(t, Patience, "its fall to be committed", func() bool {
		return slices.ContainsFunc(c.Transitions("web"), func(n Transition) bool { return n.Address == down.Addr() && n.To == "UNHEALTHY" })
	})
	expected := map[string]string{down.Addr(): "UNHEALTHY"}
	for _, address := range steady {
		expected[address] = "HEALTHY"
	}
	watch := watchPlane(t, plane, expected)
	var shown []Transition
	for round := range rounds {
		for _, s := range flipping {
			set(t, s, upstream.Status(500))
		}
		// The kill falls anywhere between before the first verdict and after
		// the last one was committed.
		waitFor(time.Duration(random.IntN(900)) * time.Millisecond)
		shown = append(shown, c.Transitions("web")...)
		c.Kill()
		c.Start()
		for address, want := range expected {
			if e := c.Endpoints("web")[address]; e.Health != want {
				t.Errorf("round %d: %s is %s right after the start: %s", round, address, e.Health, e.Reason)
			}
		}
		for _, s := range flipping {
			c.AwaitHealth("web", s.Addr(), "UNHEALTHY")
			AwaitPlane(t, plane, "web", s.Addr(), "UNHEALTHY")
			set(t, s, upstream.Healthy())
		}
		for _, s := range flipping {
			c.AwaitHealth("web", s.Addr(), "HEALTHY")
		}
	}
	for _, seen := range watch() {
		t.Errorf("the data plane saw a change that no upstream made: %s", seen)
	}
	now := c.Transitions("web")
	missing := 0
	for _, s := range shown {
		if !slices.ContainsFunc(now, func(n Transition) bool { return n.Time == s.Time && n.Address == s.Address && n.To == s.To }) {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d transitions that a query has shown are missing", missing, len(shown))
	}
	for _, change := range now {
		fell := change.Address == down.Addr() && change.To == "UNHEALTHY" && change.From == "HEALTHY"
		if expected[change.Address] != "" && change.From != "UNKNOWN" && !fell {
			t.Errorf("the history has a change that no upstream made: %+v", change)
		}
	}
	t.Logf("%d kills; %d transitions shown, %d missing", rounds, len(shown), missing)
}

// waitFor lets some time pass: how long is part of what is tested.
func waitFor(d time.Duration) { <-time.After(d) }

// watchPlane looks at a data plane all the time and remembers whatever it held
// to be other than expected, by address.
func watchPlane(t testing.TB, plane *envoy.Process, expected map[string]string) (seen func() []string) {
	var mu sync.Mutex
	var all []string
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			clusters, err := plane.TryClusters()
			mu.Lock()
			if err != nil {
				all = append(all, err.Error())
			}
			for address, want := range expected {
				if h := clusters["web"][address]; h.EDSHealth != want {
					all = append(all, fmt.Sprintf("%s %+v, want %s", address, h, want))
				}
			}
			mu.Unlock()
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-done })
	t.Cleanup(end)
	return func() []string {
		end()
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}
