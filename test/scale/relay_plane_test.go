package scale

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/internal/wire"
	"hdsd/relay/message"
	"hdsd/test/envoy"
)

// kindsPlane is a control plane that tells nodes of several kinds (node.cluster) different
// things of the same clusters, by delta. It keeps what it said.
type kindsPlane struct {
	address string
	said    []map[string]map[string][]byte // by kind, type and name
}

func newKindsPlane(t testing.TB, w *world, kinds int) *kindsPlane {
	t.Helper()
	p := &kindsPlane{}
	for kind := range kinds {
		p.said = append(p.said, map[string]map[string][]byte{
			resourcev3.ClusterType: {}, resourcev3.EndpointType: {}, resourcev3.ListenerType: {"front": fmt.Appendf(nil, "whatever bytes %d", kind)},
		})
		for i := range w.clusters {
			p.add(t, w, kind, i)
		}
	}
	p.address = servePlane(t, p.answer)
	return p
}

// unchecked tells which clusters have no health checks.
func unchecked(cluster int) bool { return cluster%10 == 9 }

// add makes a cluster as a kind of nodes sees it, with fields that hdsd does not know.
func (p *kindsPlane) add(t testing.TB, w *world, kind, i int) {
	t.Helper()
	name := clusterName(i)
	c := &clusterv3.Cluster{
		Name: name, AltStatName: fmt.Sprintf("kind-%d", kind), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}},
	}
	if !unchecked(i) {
		check := &corev3.HealthCheck{}
		if err := protojson.Unmarshal([]byte(`{"timeout": "1s", "interval": "5s", "unhealthyThreshold": 2, "healthyThreshold": 1, "httpHealthCheck": {"path": "/healthz"}}`), check); err != nil {
			t.Fatal(err)
		}
		c.HealthChecks = []*corev3.HealthCheck{check}
	}
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	each := len(w.addresses) / w.clusters
	for n, address := range w.addresses[i*each : (i+1)*each] {
		ip, _, _ := net.SplitHostPort(address)
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{
			Priority: uint32(n+kind) % 2, LoadBalancingWeight: wrapperspb.UInt32(uint32(kind + 1)),
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
				}}},
			}}}},
		})
	}
	for typeURL, m := range map[string]proto.Message{resourcev3.ClusterType: c, resourcev3.EndpointType: a} {
		wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		unknown := protowire.AppendString(protowire.AppendTag(nil, 4000, protowire.BytesType), "of another time")
		p.said[kind][typeURL][name] = append(unknown, wire...)
	}
}

// answer answers the first request of each type.
func (p *kindsPlane) answer(s grpc.ServerStream) error {
	kind := -1
	for n := 0; ; n++ {
		r, err := nextRequest(s, &kind)
		if err != nil {
			return err
		}
		if r.Answers {
			continue
		}
		out := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.TypeURL, Nonce: strconv.Itoa(n)}
		for name, wire := range p.said[kind][r.TypeURL] {
			out.Resources = append(out.Resources, &discoveryv3.Resource{Name: name, Version: "1", Resource: &anypb.Any{TypeUrl: r.TypeURL, Value: wire}})
		}
		if err := s.SendMsg(out); err != nil {
			return err
		}
	}
}

// nextRequest reads a delta request, and the kind of its node if it has one. It decodes no more, so
// that a flood of requests costs the control plane little.
func nextRequest(s grpc.ServerStream, kind *int) (r message.Head, err error) {
	var m wire.Bytes
	if err = s.RecvMsg(&m); err != nil {
		return r, err
	}
	if r, err = message.HeadOf(true, m); err != nil || len(r.Node) == 0 {
		return r, err
	}
	node := &corev3.Node{}
	if err = proto.Unmarshal(r.Node, node); err == nil {
		*kind, err = strconv.Atoi(node.GetCluster())
	}
	return r, err
}

// servePlane serves a control plane that speaks delta, until the test ends. It returns its address.
func servePlane(t testing.TB, answer func(grpc.ServerStream) error) string {
	t.Helper()
	l, err := net.Listen("tcp", envoy.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(wire.ServerOption(), grpc.MaxRecvMsgSize(64<<20), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return answer(s) }))
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-served })
	return l.Addr().String()
}
