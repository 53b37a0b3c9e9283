package coordinator_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/coordinator"
	"hdsd/store"
)

// TestStopWithDeafClients covers clients that read nothing for as long as hdsd runs. TestStopWaitsForCalls
// covers the duration of a stop.
func TestStopWithDeafClients(t *testing.T) {
	t.Parallel()
	many := make([]string, 5_000) // far more than the clients' windows hold
	for i := range many {
		many[i] = fmt.Sprintf("192.0.2.%d:%d", i%250, 1+i/250)
	}
	policies := `policies: [{cluster_name_glob: big, redundancy: 1, checkers: {metadata: {kind: stuck}}}]`
	s := newSite(t, t.TempDir(), quick+policies, static("big", many...))
	s.ready()
	narrow := func() *grpc.ClientConn {
		return s.dial(grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	}
	checker, err := healthv3.NewHealthDiscoveryServiceClient(narrow()).StreamHealthCheck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kind, err := structpb.NewStruct(map[string]any{"kind": "stuck"})
	if err != nil {
		t.Fatal(err)
	}
	if err := checker.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: &healthv3.HealthCheckRequest{
			Node: &corev3.Node{Id: "stuck", Metadata: kind}, Capability: &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP}},
		},
	}}); err != nil {
		t.Fatal(err)
	}
	plane, err := discoveryv3.NewAggregatedDiscoveryServiceClient(narrow()).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "plane"}, TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"big"}}); err != nil {
		t.Fatal(err)
	}
	idle, err := net.Dial("tcp", s.HTTPAddress())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	s.eventually("a specifier and an assignment on their way", func() bool {
		_, checkers := s.get("/v1/checkers")
		_, metrics := s.get("/metrics")
		return strings.Contains(checkers, `"assignedEndpoints":5000`) && strings.Contains(metrics, "hdsd_xds_subscriptions{")
	})

	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	for {
		if _, err = checker.Recv(); err != nil {
			break
		}
	}
	if code := status.Code(err); code != codes.Unavailable {
		t.Errorf("the checker's stream ends with %v", err)
	}
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address))
	s.ready()
	if err := s.Run(t.Context()); !errors.Is(err, coordinator.ErrUsed) {
		t.Errorf("a second Run beside the first: %v", err)
	}
	s.ready()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Run, closed: %v", err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, coordinator.ErrUsed) {
		t.Errorf("a second Run after the first: %v", err)
	}
	if _, err := s.Reload(configuration(t, s.dir, quick, static("web", address))); !errors.Is(err, coordinator.ErrUsed) {
		t.Errorf("Reload after Close: %v", err)
	}
	if code, _ := s.get("/healthz"); code != 0 {
		t.Error("something is still served")
	}
}

func TestCloseWithoutRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // the second finds database and addresses free
		s, err := coordinator.New(t.Context(), configuration(t, dir, quick, static("web", "127.0.0.1:1")), coordinator.Options{Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reload(configuration(t, dir, quick, static("api", "127.0.0.1:1"))); err != nil {
			t.Errorf("Reload before Run: %v", err)
		}
		address := s.HTTPAddress()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if l, err := net.Listen("tcp", address); err != nil {
			t.Errorf("the address is still taken: %v", err)
		} else {
			l.Close()
		}
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken := newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:1"))
	taken.ready()
	refuse := func(dir, text string) error {
		t.Helper()
		s, err := coordinator.New(t.Context(), configuration(t, dir, text, static("web", "127.0.0.1:1")), coordinator.Options{Log: zerolog.Nop()})
		if err == nil {
			s.Close()
			t.Fatal("it can start")
		}
		return err
	}
	for _, field := range []string{"grpc", "http"} {
		text := strings.Replace(quick, field+`: {address: "127.0.0.1:0"}`, field+`: {address: "`+taken.HTTPAddress()+`"}`, 1)
		if err := refuse(t.TempDir(), text); !strings.Contains(err.Error(), field+".address") || !strings.Contains(err.Error(), "in use: stop the process that listens there, or choose another address") {
			t.Errorf("%s address in use: %v", field, err)
		}
	}
	if err := refuse(t.TempDir(), quick+"data_dir: "+taken.dir+"/data\n"); !errors.Is(err, store.ErrLocked) {
		t.Errorf("data_dir in use: %v", err)
	}
	if err := refuse(t.TempDir(), quick+"data_planes: {eds_directory: clusters.yaml}\n"); !strings.Contains(err.Error(), "data_planes.eds_directory") {
		t.Errorf("a file as folder of files: %v", err)
	}
	dir := t.TempDir()
	c := configuration(t, dir, quick, static("web", "127.0.0.1:1"))
	move(t, dir, "clusters.yaml", "resources: [")
	if _, err := coordinator.New(t.Context(), c, coordinator.Options{}); err == nil || !strings.Contains(err.Error(), "clusters.yaml:1") {
		t.Errorf("clusters that cannot be read: %v", err)
	}
	if code, _ := taken.get("/readyz"); code != http.StatusOK {
		t.Error("the first one suffered")
	}
}
