package hds

import (
	"context"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// serviceV2 serves health discovery v2. On the wire a v2 message is a v3 message with fewer
// fields, except for those that formV2 and nameBuild convert. Reports need no conversion.
type serviceV2 struct {
	discoveryv2.UnimplementedHealthDiscoveryServiceServer

	server *Server
}

// StreamHealthCheck serves one checker until either side ends it.
func (v *serviceV2) StreamHealthCheck(g grpc.BidiStreamingServer[discoveryv2.HealthCheckRequestOrEndpointHealthResponse, discoveryv2.HealthCheckSpecifier]) error {
	return v.server.serve(g, true)
}

// FetchHealthCheck is Server.FetchHealthCheck in v2.
func (v *serviceV2) FetchHealthCheck(ctx context.Context, m *discoveryv2.HealthCheckRequestOrEndpointHealthResponse) (*discoveryv2.HealthCheckSpecifier, error) {
	b, err := encoded(m)
	if err != nil {
		return nil, err
	}
	return v.server.fetchV2(ctx, queryOf(ctx, b))
}

// fetchV2 answers q.
func (s *Server) fetchV2(ctx context.Context, q *query) (*discoveryv2.HealthCheckSpecifier, error) {
	q.v2 = true
	spec, err := s.fetch(ctx, q)
	if err != nil {
		return nil, err
	}
	converted := &discoveryv2.HealthCheckSpecifier{}
	if err := rewrite(spec, converted); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return converted, nil
}

// rewrite decodes the wire form of one message as another.
func rewrite(from, to proto.Message) error {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(from)
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", from.ProtoReflect().Descriptor().FullName(), err)
	}
	if err := proto.Unmarshal(encoded, to); err != nil {
		return fmt.Errorf("reading a %s as a %s: %w", from.ProtoReflect().Descriptor().FullName(), to.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// nodeBuildVersion is the one field of a v2 node that v3 has lost. It has the version, as
// "sha/1.13.1/Clean/RELEASE/ssl", if there is no user agent.
const nodeBuildVersion = 5

// nameBuild sets the user agent of a node without one by its build_version.
func nameBuild(node *corev3.Node) {
	if node.GetUserAgentVersionType() != nil {
		return
	}
	build, _ := fields.Text(node.ProtoReflect().GetUnknown(), nodeBuildVersion) // decoded fields can be read
	parts := strings.Split(build, "/")
	if len(parts) < 2 || parts[1] == "" {
		return
	}
	if node.GetUserAgentName() == "" {
		node.UserAgentName = "envoy"
	}
	node.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: strings.ToValidUTF8(parts[1], "?")}
}
