package coordinator_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	channelzpb "google.golang.org/grpc/channelz/grpc_channelz_v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
)

// TestCommonGRPCServices covers the services that tools expect of any gRPC server.
func TestCommonGRPCServices(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:1"))
	s.ready()
	connection := s.dial()
	t.Run("health", func(t *testing.T) { askHealth(t, connection) })
	t.Run("channelz", func(t *testing.T) { askChannelz(t, connection, s.GRPCAddress()) })
	t.Run("reflection v1", func(t *testing.T) {
		stream, err := reflectionv1.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		var names []string
		for _, service := range answer.GetListServicesResponse().GetService() {
			names = append(names, service.GetName())
		}
		holdServices(t, names, err)
		err = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "hdsd.v1.Query"}})
		if err != nil {
			t.Fatal(err)
		}
		if answer, err = stream.Recv(); err != nil || len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("hdsd.v1.Query is described as %v, %v", answer, err)
		}
	})
	t.Run("reflection v1alpha", func(t *testing.T) {
		stream, err := reflectionv1alpha.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context()) //nolint:staticcheck // older tools speak it
		if err != nil {
			t.Fatal(err)
		}
		err = stream.Send(&reflectionv1alpha.ServerReflectionRequest{MessageRequest: &reflectionv1alpha.ServerReflectionRequest_ListServices{}}) //nolint:staticcheck // as above
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		var names []string
		for _, service := range answer.GetListServicesResponse().GetService() { //nolint:staticcheck // as above
			names = append(names, service.GetName())
		}
		holdServices(t, names, err)
	})
}

func holdServices(t *testing.T, names []string, err error) {
	t.Helper()
	for _, want := range []string{
		"envoy.service.health.v3.HealthDiscoveryService", "envoy.service.discovery.v2.HealthDiscoveryService",
		"envoy.service.discovery.v3.AggregatedDiscoveryService", "envoy.service.endpoint.v3.EndpointDiscoveryService",
		"envoy.service.cluster.v3.ClusterDiscoveryService", "envoy.service.status.v3.ClientStatusDiscoveryService",
		"grpc.health.v1.Health", "grpc.channelz.v1.Channelz", "hdsd.v1.Query",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v, %v", want, names, err)
		}
	}
}

func askHealth(t *testing.T, connection *grpc.ClientConn) {
	client := grpc_health_v1.NewHealthClient(connection)
	answer, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("the server is %v, %v", answer, err)
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "nothing"}); status.Code(err) != codes.NotFound {
		t.Errorf("a service that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		answer, err = watch.Recv()
	}
	if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("whoever watches sees %v, %v", answer, err)
	}
}

// askChannelz finds this very connection. Channelz is of the process, so that
// other tests' servers are there as well.
func askChannelz(t *testing.T, connection *grpc.ClientConn, address string) {
	client := channelzpb.NewChannelzClient(connection)
	port := address[strings.LastIndexByte(address, ':')+1:]
	for next := int64(0); ; {
		answer, err := client.GetServers(t.Context(), &channelzpb.GetServersRequest{StartServerId: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range answer.GetServer() {
			next = server.GetRef().GetServerId() + 1
			for _, listener := range server.GetListenSocket() {
				if !strings.HasSuffix(listener.GetName(), ":"+port) {
					continue
				}
				sockets, err := client.GetServerSockets(t.Context(), &channelzpb.GetServerSocketsRequest{ServerId: server.GetRef().GetServerId()})
				if err != nil || len(sockets.GetSocketRef()) == 0 {
					t.Errorf("the server's connections are %v, %v", sockets, err)
				}
				return
			}
		}
		if answer.GetEnd() {
			t.Fatalf("no server listens on %s", address)
		}
	}
}
