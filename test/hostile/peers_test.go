package hostile

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

const (
	hdsMethod    = "/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck"
	adsMethod    = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	deltaMethod  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
	statusMethod = "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus"
	assignments  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

type (
	request = healthv3.HealthCheckRequestOrEndpointHealthResponse
	opening = healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest
	telling = healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse
)

// first is a first message. A checker without abilities gets no endpoints.
func first(node *corev3.Node) *request {
	return &request{RequestType: &opening{HealthCheckRequest: &healthv3.HealthCheckRequest{Node: node}}}
}

// lies is a report that addresses are down, or up.
func lies(status corev3.HealthStatus, cluster string, addresses ...string) *request {
	said := &healthv3.EndpointHealthResponse{}
	group := &healthv3.LocalityEndpointsHealth{Locality: &corev3.Locality{Region: "eu", Zone: "a"}}
	for _, address := range addresses {
		e := &healthv3.EndpointHealth{Endpoint: endpointAt(address), HealthStatus: status}
		said.EndpointsHealth = append(said.EndpointsHealth, e) //nolint:staticcheck // as Envoy does
		group.EndpointsHealth = append(group.EndpointsHealth, e)
	}
	if cluster != "" {
		said.ClusterEndpointsHealth = []*healthv3.ClusterEndpointsHealth{{ClusterName: cluster, LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{group}}}
	}
	return &request{RequestType: &telling{EndpointHealthResponse: said}}
}

func endpointAt(address string) *endpointv3.Endpoint {
	host, port, _ := strings.Cut(address, ":")
	var number uint32
	_, _ = fmt.Sscan(port, &number) // zero where it is none
	return &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: number},
	}}}}
}

// stream opens a stream of a bidirectional method.
func stream(t *testing.T, on *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	t.Cleanup(cancel)
	opened, err := on.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return opened
}

// end returns the error that ends a stream, and ignores messages before it.
func end(s grpc.ClientStream) error {
	for {
		if err := s.RecvMsg(&emptypb.Empty{}); err != nil { // whatever it is, it is unknown fields
			return err
		}
	}
}

// conversation sends messages and checks how the stream ends.
func (s *site) conversation(t *testing.T, on *grpc.ClientConn, method string, want codes.Code, messages ...any) {
	t.Helper()
	if err := tell(t, on, method, messages...); status.Code(err) != want {
		t.Errorf("%s ends with %v, want %v", method, err, want)
	}
}

// tell sends messages and returns the error that ends the stream. It encodes them before it opens
// the stream: with the race detector, that can take longer than hdsd waits for a first message.
func tell(t *testing.T, on *grpc.ClientConn, method string, messages ...any) error {
	t.Helper()
	for i, m := range messages {
		if m, ok := m.(proto.Message); ok {
			messages[i] = encoded(t, m)
		}
	}
	opened := stream(t, on, method)
	for _, m := range messages {
		if opened.SendMsg(m) != nil {
			break // its end says why
		}
	}
	return end(opened)
}

// encoded returns a message of unknown fields, which are those of m.
func encoded(t *testing.T, m proto.Message) proto.Message {
	t.Helper()
	content, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var unknown emptypb.Empty
	unknown.ProtoReflect().SetUnknown(content)
	return &unknown
}

func (s *site) missingNodes(t *testing.T) {
	on := s.dial(t)
	for _, m := range []*request{{}, first(nil), first(&corev3.Node{}), first(&corev3.Node{Cluster: "checkers"}), first(&corev3.Node{Id: strings.Repeat("x", 5000)})} {
		s.conversation(t, on, hdsMethod, codes.InvalidArgument, m)
	}
	// Another node on a stream that has one changes nothing.
	changing := stream(t, s.dial(t), hdsMethod)
	for _, id := range []string{"one", "checker-1", ""} {
		if err := changing.SendMsg(first(&corev3.Node{Id: id})); err != nil {
			t.Fatal(err)
		}
	}
	if err := changing.SendMsg(lies(corev3.HealthStatus_UNHEALTHY, "web", s.up)); err != nil {
		t.Fatal(err)
	}
	envoy.Eventually(t, fleet.Patience, "the lie to be counted as such", func() bool { return s.Checkers()["one"].StrangeReports != "0" })
	// A subscriber needs no node.
	nobody := stream(t, on, adsMethod)
	if err := nobody.SendMsg(&discoveryv3.DiscoveryRequest{TypeUrl: assignments, ResourceNames: []string{"web"}}); err != nil {
		t.Fatal(err)
	}
	if err := nobody.RecvMsg(&discoveryv3.DiscoveryResponse{}); err != nil {
		t.Errorf("a subscriber without a node: %v", err)
	}
}

func (s *site) strangers(t *testing.T) {
	on := s.dial(t)
	s.conversation(t, on, hdsMethod, codes.InvalidArgument, lies(corev3.HealthStatus_UNHEALTHY, "web", s.up)) // before the node
	liar := stream(t, on, hdsMethod)
	messages := []*request{first(&corev3.Node{Id: "liar"})}
	for range 20 {
		messages = append(messages,
			lies(corev3.HealthStatus_UNHEALTHY, "web", s.up, s.down), lies(corev3.HealthStatus_HEALTHY, "", s.down, s.up),
			lies(corev3.HealthStatus_UNHEALTHY, "nowhere", "192.0.2.1:1"), lies(99, "web", s.up))
	}
	for _, m := range messages {
		if err := liar.SendMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	envoy.Eventually(t, fleet.Patience, "the lies to be counted as such", func() bool {
		k := s.Checkers()["liar"]
		return len(k.StrangeReports) >= 3 && k.AssignedEndpoints == 0
	})
	envoy.Eventually(t, fleet.Patience, "the name of one who is connected to be refused to another", func() bool {
		taken := stream(t, s.dial(t), hdsMethod)
		if err := taken.SendMsg(first(&corev3.Node{Id: "checker-1", Cluster: "elsewhere"})); err != nil {
			t.Fatal(err)
		}
		return status.Code(end(taken)) == codes.AlreadyExists // else the first was silent for so long that it counts as gone
	})
	report, err := protojson.Marshal(lies(corev3.HealthStatus_UNHEALTHY, "web", s.up))
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{"": http.StatusUnauthorized, "ghost": http.StatusBadRequest, "checker-1": http.StatusBadRequest, "liar": http.StatusBadRequest} {
		if code := s.post(t, "/v3/discovery:health_check", strings.NewReader(string(report)), node); code != want {
			t.Errorf("a fetched report by %q: %d, want %d", node, code, want)
		}
	}
}

// readsNothing starts clients that send requests and never read.
func (s *site) readsNothing(t *testing.T) {
	on := s.dial(t, grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	for range 200 {
		subscriber := stream(t, on, adsMethod)
		for i := range 50 { // ask for something new without having read
			if err := subscriber.SendMsg(&discoveryv3.DiscoveryRequest{TypeUrl: assignments, ResourceNames: []string{"web", fmt.Sprint("x", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		teller := stream(t, on, statusMethod)
		for range 20 {
			if teller.SendMsg(&discoveryv3.DiscoveryRequest{}) != nil {
				break
			}
		}
	}
	var idle []func()
	for i := range 200 {
		path := []string{"/v1/endpoints", "/metrics", "/v1/watch", "/v3/discovery:client_status"}[i%4]
		idle = append(idle, s.hold(t, s.HTTP, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n", 20)))
	}
	s.alive(t)
	for _, release := range idle {
		release()
	}
	on.Close()
}
