package files

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/fields"
)

// encode makes the content of a file.
func encode(identifier string, r *discoveryv3.Resource) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&discoveryv3.DiscoveryResponse{
		VersionInfo: r.GetVersion(), TypeUrl: resourcev3.EndpointType, Resources: []*anypb.Any{r.GetResource()},
		ControlPlane: &corev3.ControlPlane{Identifier: identifier},
	})
}

// errForeign means that another program wrote a file.
var errForeign = errors.New("not written by this coordinator")

// decode returns the assignment's name and the version of a file.
func decode(identifier string, content []byte) (name, version string, err error) {
	var m discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(content, &m); err != nil {
		return "", "", fmt.Errorf("%w: %w", errForeign, err)
	}
	if m.GetControlPlane().GetIdentifier() != identifier || m.GetTypeUrl() != resourcev3.EndpointType || len(m.GetResources()) != 1 {
		return "", "", errForeign
	}
	if name, err = fields.Text(m.GetResources()[0].GetValue(), fields.Name); err != nil {
		return "", "", fmt.Errorf("%w: %w", errForeign, err)
	}
	return name, m.GetVersionInfo(), nil
}
