package servers

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
)

// ports are the clusters of a server: the port of each one's endpoint.
type ports map[string]int

// server is a control plane that can be killed and started again.
type server interface {
	start(version string, has ports)
	kill()
	requests() int64 // so far
}

// goServer is go-control-plane's.
type goServer struct {
	t       *testing.T
	address string
	count   atomic.Int64
	end     func()
}

// anyone has all nodes share one snapshot.
type anyone struct{}

func (anyone) ID(*corev3.Node) string { return "" }

func (s *goServer) requests() int64 { return s.count.Load() }

func (s *goServer) kill() { s.end() }

func (s *goServer) start(version string, has ports) {
	s.t.Helper()
	all := map[resource.Type][]types.Resource{}
	for name, port := range has {
		all[resource.ClusterType] = append(all[resource.ClusterType], &clusterv3.Cluster{
			Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			}},
		})
		at := &corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)}} //nolint:gosec // a port
		all[resource.EndpointType] = append(all[resource.EndpointType], &endpointv3.ClusterLoadAssignment{
			ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: at}}}},
			}}}},
		})
	}
	snapshot, err := cache.NewSnapshot(version, all)
	if err != nil {
		s.t.Fatal(err)
	}
	snapshots := cache.NewSnapshotCache(true, anyone{}, nil)
	if err := snapshots.SetSnapshot(s.t.Context(), "", snapshot); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	serves := gcp.NewServer(ctx, snapshots, gcp.CallbackFuncs{
		StreamRequestFunc:      func(int64, *discoveryv3.DiscoveryRequest) error { s.count.Add(1); return nil },
		StreamDeltaRequestFunc: func(int64, *discoveryv3.DeltaDiscoveryRequest) error { s.count.Add(1); return nil },
	})
	over := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(over, serves)
	clusterservice.RegisterClusterDiscoveryServiceServer(over, serves)
	endpointservice.RegisterEndpointDiscoveryServiceServer(over, serves)
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = over.Serve(listener) }) // until it is killed
	s.end = func() { over.Stop(); cancel(); served.Wait() }
}

// javaServer is java-control-plane's.
type javaServer struct {
	t       *testing.T
	address string
	command []string
	count   atomic.Int64
	end     func()
}

func newJavaServer(t *testing.T, address string) *javaServer {
	t.Helper()
	root, err := envoy.Repository()
	if err != nil {
		t.Fatal(err)
	}
	from, jars := filepath.Join(root, "test", "servers", "java"), filepath.Join(root, ".cache", "servers-java")
	if err := os.MkdirAll(jars, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := real.Lock(filepath.Join(jars, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	wanted, err := os.ReadFile(filepath.Join(from, "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(jars, "installed")
	if done, err := os.ReadFile(mark); err != nil || !bytes.Equal(done, wanted) {
		fetch := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "-f", filepath.Join(from, "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory="+jars)
		if out, err := fetch.CombinedOutput(); err != nil {
			t.Fatalf("mvn: %v\n%s", err, out)
		}
		if err := os.WriteFile(mark, wanted, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &javaServer{t: t, address: address, command: []string{"java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), filepath.Join(from, "Server.java")}}
}

func (s *javaServer) requests() int64 { return s.count.Load() }

func (s *javaServer) kill() { s.end() }

func (s *javaServer) start(version string, has ports) {
	s.t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	process := exec.Command(s.command[0], append(s.command[1:len(s.command):len(s.command)], port)...) //nolint:gosec // the command above
	line := []string{version}
	for name, port := range has {
		line = append(line, name+"="+strconv.Itoa(port))
	}
	input, output := pipes(s.t, process)
	if err := process.Start(); err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintln(input, strings.Join(line, " "))
	var read sync.WaitGroup
	read.Go(func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			s.count.Add(1)
		}
	})
	s.end = func() {
		_ = process.Process.Kill()
		read.Wait()
		_ = process.Wait() // it was killed
	}
}

func pipes(t *testing.T, process *exec.Cmd) (io.Writer, io.Reader) {
	t.Helper()
	input, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return input, output
}
