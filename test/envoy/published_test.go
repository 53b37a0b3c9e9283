package envoy_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	configv1 "hdsd/gen/hdsd/config/v1"

	"hdsd/coordinator/catalog"
	"hdsd/source"
	"hdsd/test/envoy"
)

var publishedSeed = flag.Uint64("published-seed", 0, "the seed of TestAnEnvoyTakesWhatIsPublished; 0: another each time")

// TestAnEnvoyTakesWhatIsPublished of assignments with odd endpoints and localities: hdsd leaves
// out what an Envoy would refuse.
func TestAnEnvoyTakesWhatIsPublished(t *testing.T) {
	seed := cmp.Or(*publishedSeed, rand.Uint64())
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const count = 24 // an Envoy watches each file, and a machine may have few watches
	rules, folder, leftOut := catalog.NewRules(&configv1.Config{}), t.TempDir(), 0
	var clusters strings.Builder
	published := make([]string, count)
	for i := range count {
		name := fmt.Sprintf("case_%d", i)
		given := oddAssignment(random, name)
		k := catalog.Prepare(&source.Cluster{Name: name, ServiceName: name, Assignment: source.EncodeAssignment(given), Lone: true}, rules)
		leftOut += len(k.Exclusions())
		if k.Assignment == nil {
			t.Fatalf("nothing of it is published: %v", given)
		}
		published[i] = protojson.Format(k.Assignment.Message())
		text := strings.Replace(published[i], "{", `{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", `, 1)
		path := filepath.Join(folder, name+".json")
		if err := os.WriteFile(path, []byte(`{"resources": [`+text+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&clusters, "  - {name: %s, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: %q}}}}\n", name, path)
	}
	if leftOut == 0 {
		t.Error("no endpoint was left out, so that nothing was tried")
	}
	p := envoy.Start(t, "", "published", []byte("node: {id: published, cluster: tests}\n"+
		"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstatic_resources:\n  clusters:\n"+clusters.String()))
	var stats map[string]uint64
	envoy.Eventually(t, 20*time.Second, "all assignments to be taken or refused", func() bool {
		stats = p.Stats(t, `^cluster\.case_.*\.update_(success|rejected|failure)$`)
		answers := uint64(0)
		for _, n := range stats {
			answers += n
		}
		return answers >= count
	})
	for i, text := range published {
		if name := fmt.Sprintf("cluster.case_%d.", i); stats[name+"update_success"] == 0 {
			t.Errorf("an Envoy refuses %s", text)
		}
	}
}

// oddAssignment makes an assignment with odd endpoints and localities.
func oddAssignment(random *rand.Rand, name string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for range 1 + random.IntN(3) {
		group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: pick(random, "", "a", "b")}, Priority: pick(random, uint32(0), 0, 1, 3)}
		for range random.IntN(4) {
			group.LbEndpoints = append(group.LbEndpoints, oddEndpoint(random))
		}
		a.Endpoints = append(a.Endpoints, group)
	}
	return a
}

func oddEndpoint(random *rand.Rand) *endpointv3.LbEndpoint {
	if random.IntN(8) == 0 {
		return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}}
	}
	endpoint := &endpointv3.Endpoint{Address: oddAddress(random), Hostname: pick(random, "", "a.b")}
	if random.IntN(4) == 0 {
		endpoint.AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: socketAddress(random)}}
	}
	if random.IntN(4) == 0 {
		endpoint.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: pick(random, uint32(0), 80, 65536)}
	}
	e := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint}}
	if random.IntN(3) == 0 {
		e.LoadBalancingWeight = wrapperspb.UInt32(pick(random, uint32(0), 1, 7, math.MaxUint16))
	}
	return e
}

func oddAddress(random *rand.Rand) *corev3.Address {
	if random.IntN(6) == 0 {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: pick(random, "/a", "@a", "/"+strings.Repeat("a", 120)), Mode: pick(random, uint32(0), 0o600)}}}
	}
	return socketAddress(random)
}

func socketAddress(random *rand.Rand) *corev3.Address {
	s := &corev3.SocketAddress{
		Address:       pick(random, "127.0.0.1", "127.0.0.2", "::1", "0:0::1", "a.b", "127.000.0.1"),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: pick(random, uint32(80), 81, 65535, 65536)},
	}
	if random.IntN(8) == 0 {
		s.PortSpecifier = &corev3.SocketAddress_NamedPort{NamedPort: "http"}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: s}}
}

func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }
