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
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// serviceV2 serves health discovery v2. On the wire a v2 message is a v3 message
// with less in it, except for what formV2 and nameBuild convert. Reports need no
// conversion.
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
	out := &discoveryv2.HealthCheckSpecifier{}
	if err := rewrite(spec, out); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return out, nil
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

// nodeBuildVersion is the one field of a v2 node that v3 has lost. It has the
// version, as "sha/1.13.1/Clean/RELEASE/ssl", where there is no user agent.
const nodeBuildVersion = 5

// nameBuild gives a node without a user agent the one in its build_version.
func nameBuild(node *corev3.Node) {
	if node.GetUserAgentVersionType() != nil {
		return
	}
	parts := strings.Split(unknownText(node, nodeBuildVersion), "/")
	if len(parts) < 2 || parts[1] == "" {
		return
	}
	if node.GetUserAgentName() == "" {
		node.UserAgentName = "envoy"
	}
	node.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: strings.ToValidUTF8(parts[1], "?")}
}

// unknownText gives the last value of a field that is unknown to m.
func unknownText(m proto.Message, wanted protowire.Number) string {
	text := ""
	for b := []byte(m.ProtoReflect().GetUnknown()); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return text
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return text
		}
		if number == wanted && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b[n:])
			text = string(value)
		}
		b = b[n+size:]
	}
	return text
}
