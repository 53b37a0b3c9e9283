package hostile

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/check"
	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// How much more hdsd may need during an attack: far more than it did, and far less than
// is sent.
const (
	moreHeap       = 700 << 20
	moreAtOnce     = 30_000 // goroutines
	moreGoroutines = 200    // when the attack is over
)

// site is a running hdsd that checks two endpoints, one of them down.
type site struct {
	*fleet.Coordinator
	up, down string
	clusters string
	before   map[string]fleet.Endpoint
	idle     figures
}

func newSite(t *testing.T) *site {
	t.Helper()
	s, _ := newSiteBy(t, func(*fleet.Coordinator) {})
	return s
}

// newSiteUnder is newSite with a line of shell before hdsd starts, such as a ulimit. It
// also returns the endpoint that is up.
func newSiteUnder(t *testing.T, limit string) (*site, *upstream.Server) {
	t.Helper()
	return newSiteBy(t, func(c *fleet.Coordinator) {
		script := filepath.Join(t.TempDir(), "hdsd")
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+limit+"\nexec "+c.Binary+" \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.Binary = script
	})
}

// newSiteBy is newSite with a change before hdsd starts.
func newSiteBy(t *testing.T, change func(*fleet.Coordinator)) (*site, *upstream.Server) {
	t.Helper()
	ups := fleet.Upstreams(t, 2, upstream.Options{})
	if err := ups[1].Set(upstream.Status(503)); err != nil {
		t.Fatal(err)
	}
	s := &site{up: ups[0].Addr(), down: ups[1].Addr()}
	s.clusters = fleet.ClusterFile(fleet.StaticCluster("web", fleet.CheckHTTP, []string{s.up, s.down}))
	s.Coordinator = fleet.Prepare(t, s.clusters, fleet.FastReports)
	change(s.Coordinator)
	s.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = check.Run(ctx, check.Options{Server: s.GRPC, NodeID: "checker-1", Locality: health.Locality{Zone: "a"}, Log: zerolog.Nop()})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	s.AwaitHealth("web", s.up, "HEALTHY")
	s.AwaitHealth("web", s.down, "UNHEALTHY")
	s.before, s.idle = s.Endpoints("web"), s.figures(t)
	return s, ups[0]
}

// figures is what hdsd uses.
type figures struct{ heap, goroutines, problems float64 }

func (s *site) figures(t *testing.T) figures {
	t.Helper()
	f, err := s.ask()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var asking = http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (s *site) ask() (f figures, err error) {
	answer, err := asking.Get("http://" + s.HTTP + "/metrics")
	if err != nil {
		return f, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		for name, into := range map[string]*float64{"go_memstats_heap_inuse_bytes ": &f.heap, "go_goroutines ": &f.goroutines, "hdsd_source_problems ": &f.problems} {
			if text, ok := strings.CutPrefix(lines.Text(), name); ok {
				if *into, err = strconv.ParseFloat(text, 64); err != nil {
					return f, err
				}
			}
		}
	}
	if f.heap == 0 || f.goroutines == 0 {
		return f, fmt.Errorf("the metrics lack what is looked for")
	}
	return f, nil
}

// under runs an attack, and checks what hdsd uses. Afterwards everything must be as
// before.
func (s *site) under(t *testing.T, attack func(t *testing.T)) {
	t.Helper()
	done := make(chan struct{})
	var peak figures
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if f, err := s.ask(); err == nil {
				peak.heap, peak.goroutines = max(peak.heap, f.heap), max(peak.goroutines, f.goroutines)
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	attack(t)
	close(done)
	watching.Wait()
	t.Logf("heap at most %.0f MB, goroutines %.0f", peak.heap/1e6, peak.goroutines)
	if peak.heap > s.idle.heap+moreHeap {
		t.Errorf("the heap grew to %.0f MB, from %.0f", peak.heap/1e6, s.idle.heap/1e6)
	}
	if peak.goroutines > s.idle.goroutines+moreAtOnce {
		t.Errorf("there were %.0f goroutines, before %.0f", peak.goroutines, s.idle.goroutines)
	}
	s.unharmed(t)
}

// unharmed checks that hdsd is up, its verdicts and history are unchanged, and what it
// used for the attacker is free again.
func (s *site) unharmed(t *testing.T) {
	t.Helper()
	envoy.Eventually(t, fleet.Patience, "goroutines to end", func() bool {
		f, err := s.ask()
		return err == nil && f.goroutines < s.idle.goroutines+moreGoroutines
	})
	present := s.Endpoints("web")
	for address, was := range s.before {
		now := present[address]
		if now.Health != was.Health || now.Since != was.Since {
			t.Errorf("%s is %+v, was %+v", address, now, was)
		}
	}
	envoy.Eventually(t, fleet.Patience, "the checker to vote", func() bool {
		now := s.Endpoints("web")
		for address := range s.before {
			e := now[address]
			if len(e.Observations) != 1 || e.Observations[0].Checker != "checker-1" || e.Observations[0].Disbelieved != "" {
				return false
			}
		}
		return true
	})
	if history := s.Transitions("web"); len(history) != 2 {
		t.Errorf("the history has %+v", history)
	}
	if logs := s.Logs(); strings.Contains(logs, "DATA RACE") || strings.Contains(logs, "panic") {
		t.Error("a race, or a panic")
	}
}

// dial connects to the gRPC address, without a limit on sent messages.
func (s *site) dial(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(s.GRPC, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30), grpc.MaxCallRecvMsgSize(1<<30)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}
