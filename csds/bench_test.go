package csds

import (
	"fmt"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// BenchmarkAnswer makes and encodes the response for 100 clients with 1,000 assignments of
// 10 endpoints each. The clients share the assignments, as in eds.
func BenchmarkAnswer(b *testing.B) {
	all := make([]Resource, 1000)
	for i := range all {
		a := &endpointv3.ClusterLoadAssignment{ClusterName: fmt.Sprint("cluster-", i), Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
		for n := range 10 {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{
				HealthStatus: corev3.HealthStatus_HEALTHY,
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
					Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
						Address: fmt.Sprintf("10.0.%d.%d", i%250, n), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
					}},
				}}},
			})
		}
		shared := body(b, a)()
		all[i] = Resource{
			TypeURL: resourcev3.EndpointType, Name: a.GetClusterName(), Version: "0123456789abcdef", Updated: start,
			Config: statusv3.ConfigStatus_SYNCED, Client: adminv3.ClientResourceStatus_ACKED,
			Body: func() *anypb.Any { return &anypb.Any{TypeUrl: shared.GetTypeUrl(), Value: shared.GetValue()} },
		}
	}
	var source fixed
	for i := range 100 {
		source = append(source, Client{Node: &corev3.Node{Id: fmt.Sprint("dp-", i)}, Resources: resources(all...)})
	}
	s := NewServer(Options{MaxBytes: 1 << 30}, source)
	for name, r := range map[string]*statusv3.ClientStatusRequest{
		"all": {}, "excluded": {ExcludeResourceContents: true},
		"one client": request(b, `{"node_id":{"exact":"dp-7"}}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				response, err := s.FetchClientStatus(b.Context(), r)
				if err != nil {
					b.Fatal(err)
				}
				encoded, err := proto.Marshal(response)
				if err != nil {
					b.Fatal(err)
				}
				size = len(encoded)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
