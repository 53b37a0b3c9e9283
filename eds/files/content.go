package files

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// encode makes the content of a file.
func encode(identifier string, r *discoveryv3.Resource) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&discoveryv3.DiscoveryResponse{
		VersionInfo: r.GetVersion(), TypeUrl: resourcev3.EndpointType, Resources: []*anypb.Any{r.GetResource()},
		ControlPlane: &corev3.ControlPlane{Identifier: identifier},
	})
}

// errForeign says that a file is not this coordinator's.
var errForeign = errors.New("not written by this coordinator")

// decode reads which assignment a file has, and its version.
func decode(identifier string, content []byte) (name, version string, err error) {
	var m discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(content, &m); err != nil {
		return "", "", fmt.Errorf("%w: %w", errForeign, err)
	}
	if m.GetControlPlane().GetIdentifier() != identifier || m.GetTypeUrl() != resourcev3.EndpointType || len(m.GetResources()) != 1 {
		return "", "", errForeign
	}
	name, err = nameOf(m.GetResources()[0].GetValue())
	return name, m.GetVersionInfo(), err
}

// nameOf reads the cluster_name of an encoded assignment without decoding its endpoints.
func nameOf(assignment []byte) (name string, err error) {
	const clusterName = 1
	for len(assignment) > 0 {
		number, kind, n := protowire.ConsumeField(assignment)
		if n < 0 {
			return "", fmt.Errorf("%w: %w", errForeign, protowire.ParseError(n))
		}
		if number == clusterName && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(assignment)
			value, _ := protowire.ConsumeBytes(assignment[tag:n])
			name = string(value)
		}
		assignment = assignment[n:]
	}
	return name, nil
}
