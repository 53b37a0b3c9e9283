package fleet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/test/envoy"
	"hdsd/test/proxyless"
)

// mesh is a service of these gRPC backends, in Istio's words.
func mesh(backends ...*proxyless.Backend) string {
	var b strings.Builder
	b.WriteString(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: shop, namespace: default}
spec:
  host: shop.example.com
  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 7}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop, namespace: default}
spec:
  hosts: [shop.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  endpoints:
`)
	for _, one := range backends {
		host, port, _ := net.SplitHostPort(one.Address)
		fmt.Fprintf(&b, "  - {address: %s, ports: {grpc: %s}, locality: region/zone}\n", host, port)
	}
	return b.String()
}

// TestIstioBehindTheRelay: gRPC clients have Istio's control plane behind hdsd, and Envoys of
// two kinds get from it what they would get without hdsd, but for health.
func TestIstioBehindTheRelay(t *testing.T) {
	t.Parallel()
	one, other := proxyless.NewBackend(t), proxyless.NewBackend(t)
	istio := Istio(t, mesh(one, other))
	c := Prepare(t, "resources: []\n", "")
	c.RelayTo(istio, `default_health_checks:
- cluster_name_glob: "outbound|*"
  health_checks: [{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, grpc_health_check: {}}]
`)
	c.Start()
	Checkers(t, c, 1)
	client := proxyless.NewClient(t, "xds:///shop.example.com:80", proxyless.Bootstrap{
		Node:    proxyless.Node{ID: "sidecar~127.0.0.1~client.default~default.svc.cluster.local", Metadata: map[string]any{"GENERATOR": "grpc", "NAMESPACE": "default"}},
		Servers: []proxyless.Server{{Address: c.GRPC}},
	})
	reached := func(want ...bool) func() bool {
		return func() bool { return slices.Equal(client.Reach(one, other), want) }
	}
	envoy.Eventually(t, Patience, "calls at both", reached(true, true))
	const cluster = "outbound|80||shop.example.com"
	c.AwaitHealth(cluster, one.Address, "HEALTHY")
	one.Fail()
	envoy.Eventually(t, Patience, "calls at the other one only", reached(false, true))
	one.Recover()
	envoy.Eventually(t, Patience, "calls at both again", reached(true, true))

	for _, kind := range []string{"router", "sidecar"} {
		for _, delta := range []bool{true, false} {
			direct := recordIstio(t, istio, kind, delta)
			var different string
			if !envoy.Await(Patience, func() bool { // what a kind of nodes adds is checked first
				different = direct.difference(t, recordIstio(t, c.GRPC, kind, delta))
				return different == ""
			}) {
				t.Errorf("%s, delta %t: %s", kind, delta, different)
			}
		}
	}
}

// record is what a node was told, by type and name.
type record map[string]map[string][]byte

// recordIstio asks a server for all that an Envoy in a mesh asks for.
func recordIstio(t *testing.T, server, kind string, delta bool) record {
	t.Helper()
	conn, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "default", "ISTIO_VERSION": "1.31.0"})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: kind + "~127.0.0.1~" + kind + ".default~default.svc.cluster.local", Metadata: metadata}
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	var ask func(typeURL string, names []string) map[string][]byte
	if delta {
		stream, err := ads.DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ask = func(typeURL string, names []string) map[string][]byte {
			return askDelta(t, stream, node, typeURL, names)
		}
	} else {
		stream, err := ads.StreamAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ask = func(typeURL string, names []string) map[string][]byte {
			return askState(t, stream, node, typeURL, names)
		}
	}
	got := record{resource.ClusterType: ask(resource.ClusterType, nil)}
	got[resource.EndpointType] = ask(resource.EndpointType, assignmentsOf(t, got[resource.ClusterType]))
	if kind == "sidecar" { // gateways have listeners for a Gateway only
		got[resource.ListenerType] = ask(resource.ListenerType, nil)
		got[resource.RouteType] = ask(resource.RouteType, routesOf(t, got[resource.ListenerType]))
	}
	return got
}

func askDelta(t *testing.T, s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, node *corev3.Node, typeURL string, names []string) map[string][]byte {
	t.Helper()
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNamesSubscribe: names}); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}); err != nil {
			t.Fatal(err)
		}
		if r.GetTypeUrl() != typeURL { // health
			continue
		}
		all := map[string][]byte{}
		for _, one := range r.GetResources() {
			all[one.GetName()] = one.GetResource().GetValue()
		}
		return all
	}
}

func askState(t *testing.T, s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient, node *corev3.Node, typeURL string, names []string) map[string][]byte {
	t.Helper()
	if err := s.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: names}); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetTypeUrl() != typeURL { // health
			continue
		}
		if err := s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names, VersionInfo: r.GetVersionInfo(), ResponseNonce: r.GetNonce()}); err != nil {
			t.Fatal(err)
		}
		all := map[string][]byte{}
		for _, packed := range r.GetResources() {
			m, err := packed.UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			name := ""
			switch m := m.(type) {
			case *endpointv3.ClusterLoadAssignment:
				name = m.GetClusterName()
			case interface{ GetName() string }:
				name = m.GetName()
			}
			all[name] = packed.GetValue()
		}
		return all
	}
}

func parseAs[M proto.Message](t *testing.T, wire []byte, m M) M {
	t.Helper()
	if err := proto.Unmarshal(wire, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// assignmentsOf names the assignments of clusters.
func assignmentsOf(t *testing.T, clusters map[string][]byte) (names []string) {
	t.Helper()
	for name, wire := range clusters {
		if parseAs(t, wire, &clusterv3.Cluster{}).GetType() == clusterv3.Cluster_EDS {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// routesOf names the routes of listeners.
func routesOf(t *testing.T, listeners map[string][]byte) (names []string) {
	t.Helper()
	for _, wire := range listeners {
		for _, chain := range parseAs(t, wire, &listenerv3.Listener{}).GetFilterChains() {
			for _, filter := range chain.GetFilters() {
				m := &managerv3.HttpConnectionManager{}
				if filter.GetTypedConfig().MessageIs(m) {
					if name := parseAs(t, filter.GetTypedConfig().GetValue(), m).GetRds().GetRouteConfigName(); name != "" {
						names = append(names, name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// difference tells what was not told through hdsd as without it. Each endpoint has health.
func (direct record) difference(t *testing.T, relayed record) string {
	t.Helper()
	for typeURL, resources := range direct {
		want, got := slices.Sorted(maps.Keys(resources)), slices.Sorted(maps.Keys(relayed[typeURL]))
		if len(want) == 0 || !slices.Equal(got, want) {
			return fmt.Sprintf("the names of %s came as %q, want %q", typeURL, got, want)
		}
		for name, want := range resources {
			if typeURL == resource.EndpointType {
				var err error
				if want, err = publish.OverlayAssignment(want, func(publish.Key, health.Status) (health.Status, bool) { return health.Healthy, true }); err != nil {
					t.Fatal(err)
				}
			}
			if got := relayed[typeURL][name]; !bytes.Equal(got, want) {
				return fmt.Sprintf("%s of %s came as %x, want %x", name, typeURL, got, want)
			}
		}
	}
	return ""
}
