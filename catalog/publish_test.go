package catalog_test

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/internal/yamlpb"
	"hdsd/source"
	"hdsd/source/sample"
	"hdsd/test/envoy"
)

// Nothing is given on that makes an Envoy refuse the rest of an assignment, with
// health checks or without. (What Envoys refuse is TestWhichEndpointsEnvoyTakes
// in test/envoy.)
func TestEndpointsThatNoEnvoyTakesAreNotGivenOn(t *testing.T) {
	r := noRules()
	given := func(from *source.Cluster) bool {
		return len(catalog.Prepare(from, r).Assignment.Message().GetEndpoints()[0].GetLbEndpoints()) > 0
	}
	for _, e := range envoy.Endpoints() {
		root, problems := yamlpb.ParseAsEnvoy("a.yaml", []byte("{"+e.Assignment("x")+"}"))
		a := &endpointv3.ClusterLoadAssignment{}
		if problems = append(problems, root.Decode(a)...); len(problems) > 0 {
			t.Fatal(problems)
		}
		for kind, want := range map[clusterv3.Cluster_DiscoveryType]bool{
			clusterv3.Cluster_STATIC: e.Static, clusterv3.Cluster_EDS: e.EDS,
		} {
			config := &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind}}
			if got := given(&source.Cluster{Name: "x", ServiceName: "x", Config: config, Assignment: source.EncodeAssignment(a)}); got != want {
				t.Errorf("%s, %v: given on: %t", e.Endpoint, kind, got)
			}
		}
		if got := given(&source.Cluster{Name: "x", ServiceName: "x", Assignment: source.EncodeAssignment(a)}); got != e.EDS {
			t.Errorf("%s, alone: given on: %t", e.Endpoint, got)
		}
	}
}

// What is not given on is listed with a reason, though nothing of its cluster is
// checked.
func TestWhatIsNotGivenOnIsListed(t *testing.T) {
	from := sample.Web("x", "10.0.0.1:80", "db.internal:80")
	from.HealthChecks = nil
	from.Config = &clusterv3.Cluster{Name: "x"}
	k := catalog.Prepare(from, noRules())
	if n := len(k.Assignment.Message().GetEndpoints()[0].GetLbEndpoints()); n != 1 || len(k.Published(false).GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()) != 1 {
		t.Errorf("%d endpoints are given on", n)
	}
	found := k.Exclusions()
	if len(found) != 1 || found[0].Address != "db.internal:80" || !strings.Contains(found[0].Reason, "is no IP address") {
		t.Errorf("listed are %v", found)
	}
	for _, e := range k.Endpoints {
		if want := e.Address() == "db.internal:80"; strings.HasPrefix(e.Reason(), "not published") != want {
			t.Errorf("%s: %s", e.Address(), e.Reason())
		}
	}
}

// A name that comes by EDS is left out alone, and its reason says so, also where a checker
// could not check it either.
func TestANameByEDSIsLeftOutAlone(t *testing.T) {
	from := sample.Web("x", "10.0.0.1:80", "db.internal:80")
	from.Config = &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}
	for _, whole := range []bool{false, true} {
		if whole {
			from.HealthChecks = []*corev3.HealthCheck{{}} // nothing that a checker is sent
		}
		k := catalog.Prepare(from, noRules())
		if n := len(k.Assignment.Message().GetEndpoints()[0].GetLbEndpoints()); n != 1 || k.IsChecked() == whole {
			t.Errorf("%d endpoints are given on; checked: %t", n, k.IsChecked())
		}
		reasons := map[string]string{}
		for _, q := range k.Exclusions() {
			reasons[q.Address] += q.Reason
		}
		const want = `not published, since clients refuse all that comes with it: "db.internal" is no IP address`
		if !strings.HasPrefix(reasons["db.internal:80"], want) || len(reasons) > 1 != whole {
			t.Errorf("listed are %q", reasons)
		}
		if e := k.Find(&health.Endpoint{Cluster: "x", Locality: k.Endpoints[0].Key().Locality, Address: "db.internal:80"}); e == nil || !strings.HasPrefix(e.Reason(), want) || e.InAssignment {
			t.Errorf("the endpoint is %+v", e)
		}
	}
}

// An EDS cluster that hdsd does not check and that names no source of its
// endpoints is nothing that an Envoy takes: they come from here.
func TestAnEDSClusterThatNamesNoSourceIsToldOfOne(t *testing.T) {
	r := noRules()
	named := &clusterv3.Cluster_EdsClusterConfig{ServiceName: "s", EdsConfig: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: "endpoints.yaml"},
	}}
	self := &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}}}
	for _, by := range []*clusterv3.Cluster_EdsClusterConfig{nil, {ServiceName: "s"}, {EdsConfig: &corev3.ConfigSource{}}, self, named} {
		config := &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}, EdsClusterConfig: by}
		before := proto.CloneOf(config)
		k := catalog.Prepare(&source.Cluster{Name: "x", ServiceName: "x", Config: config}, r)
		got := k.Published(false).GetEdsClusterConfig()
		if by == named && k.Published(false) != config || by != named && got.GetEdsConfig().GetAds() == nil || got.GetServiceName() != by.GetServiceName() {
			t.Errorf("%v became %v", by, got)
		}
		if k.ByEDS() || !proto.Equal(config, before) {
			t.Errorf("given is %v, and the source's %v", k.Published(false), config)
		}
	}
}

// What an Envoy would refuse a cluster for, and does not need, is left out: the endpoints that an
// EDS cluster lists, and gRPC checks without HTTP/2, which checkers make all the same.
func TestWhatAnEnvoyRefusesAndDoesNotNeedIsLeftOut(t *testing.T) {
	for _, kind := range []clusterv3.Cluster_DiscoveryType{clusterv3.Cluster_STATIC, clusterv3.Cluster_EDS} {
		for _, http2 := range []bool{false, true} {
			from := sample.Web("x", "10.0.0.1:80")
			check := from.HealthChecks[0]
			check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
			from.Config = &clusterv3.Cluster{
				Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind}, HealthChecks: from.HealthChecks,
			}
			if kind == clusterv3.Cluster_EDS {
				from.Config.LoadAssignment = from.Assignment.Message()
			}
			if http2 {
				from.Config.Http2ProtocolOptions = &corev3.Http2ProtocolOptions{} //nolint:staticcheck // many clusters still have it
			}
			k := catalog.Prepare(from, noRules())
			for _, c := range []*clusterv3.Cluster{k.Published(true), k.Original()} {
				if len(c.GetHealthChecks()) > 0 != http2 || c.GetType() == clusterv3.Cluster_EDS && c.GetLoadAssignment() != nil {
					t.Errorf("with HTTP/2: %t, published is %v", http2, c)
				}
			}
			if !k.IsChecked() {
				t.Error("checkers do not check it")
			}
		}
	}
}

// A LOGICAL_DNS cluster whose endpoint is left out is none that an Envoy takes.
func TestALogicalDNSClusterNeedsItsEndpoint(t *testing.T) {
	for _, port := range []string{"80", "99999"} {
		from := sample.Web("x", "db.internal:"+port)
		from.Config = &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}}
		if k := catalog.Prepare(from, noRules()); k.IsPublished() != (port == "80") {
			t.Errorf("port %s: published: %t", port, k.IsPublished())
		}
	}
}

// Priorities count by their order alone, and clients rely on it that none is skipped.
func TestNoPriorityIsSkipped(t *testing.T) {
	from := sample.Web("x", "10.0.0.1:80")
	a := from.Assignment.Message()
	for _, priority := range []uint32{7, 3, 7} {
		group := proto.CloneOf(a.GetEndpoints()[0])
		group.Priority = priority
		a.Endpoints = append(a.Endpoints, group)
	}
	from.Assignment = source.EncodeAssignment(a)
	var got []uint32
	for _, group := range catalog.Prepare(from, noRules()).Assignment.Message().GetEndpoints() {
		got = append(got, group.GetPriority())
	}
	if !slices.Equal(got, []uint32{0, 2, 1, 2}) {
		t.Errorf("the priorities are %v", got)
	}
}

// What hdsd does not know goes from a source to data planes as it came, and
// the cluster is checked all the same.
func TestWhatIsNotKnownPassesThrough(t *testing.T) {
	unknown := &anypb.Any{TypeUrl: "type.example.com/nobody.knows.This", Value: []byte{0x0a, 0x01, 'x'}}
	from := sample.Web("web", "10.0.0.1:80", "10.0.0.2:80")
	from.Config = &clusterv3.Cluster{
		Name: "web", HealthChecks: from.HealthChecks,
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"odd": unknown},
		Filters:                       []*clusterv3.Filter{{Name: "odd", TypedConfig: unknown}},
		Metadata:                      &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"odd": unknown}},
	}
	from.Config.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 9999, protowire.BytesType), "new"))
	k := catalog.Prepare(from, noRules())
	if !k.IsChecked() || len(k.Exclusions()) > 0 {
		t.Errorf("it is not checked: %v", k.Exclusions())
	}
	got := proto.CloneOf(k.Published(false))
	got.HealthChecks, got.ClusterDiscoveryType, got.EdsClusterConfig = from.Config.HealthChecks, nil, nil
	if !proto.Equal(got, from.Config) {
		t.Errorf("got %v, want %v", got, from.Config)
	}
}

// The lease of an assignment is between hdsd and its source. Data planes would let it end
// although hdsd has the endpoints: they get it from nobody but hdsd, which sends changes only.
func TestLeasesAreNotPublished(t *testing.T) {
	for _, kind := range []clusterv3.Cluster_DiscoveryType{clusterv3.Cluster_STATIC, clusterv3.Cluster_EDS, clusterv3.Cluster_STRICT_DNS} {
		from := sample.Web("x", "10.0.0.1:80")
		a := from.Assignment.Message()
		a.Policy = &endpointv3.ClusterLoadAssignment_Policy{
			EndpointStaleAfter: durationpb.New(8e9), OverprovisioningFactor: wrapperspb.UInt32(120),
		}
		from.Assignment = source.EncodeAssignment(a)
		from.Config.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: kind}
		a.Policy.EndpointStaleAfter = nil
		if got := catalog.Prepare(from, noRules()).Assignment; !got.Equal(source.EncodeAssignment(a)) {
			t.Errorf("%v: published: %v", kind, got.Message())
		}
		if from.Assignment.Message().GetPolicy().GetEndpointStaleAfter() == nil {
			t.Errorf("%v: the source's own has no lease any more", kind)
		}
	}
}
