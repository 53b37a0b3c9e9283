package rules

import (
	"fmt"
	"regexp"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
	"hdsd/internal/yamlpb"
)

const typePrefix = "type.googleapis.com/"

// The type URLs of the resources of sources.
const (
	Cluster    = typePrefix + "envoy.config.cluster.v3.Cluster"
	Assignment = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	Wrapper    = fields.WrapperType // wraps one of them
)

// Wrong describes the fault of a resource's type URL; empty if there is none.
func Wrong(url string) string {
	const wanted = `"@type": ` + Cluster + ` or ` + Assignment
	switch {
	case url == "":
		return "needs " + wanted
	case strings.HasPrefix(url, typePrefix+"envoy.api.v2."):
		return fmt.Sprintf("is of type %s, which came to its end with v2: it needs %s", url, wanted)
	default:
		return fmt.Sprintf("is of type %s, which is no source of endpoints: it needs %s", url, wanted)
	}
}

// inEndpoint matches fields of a single endpoint. These do not reject the cluster:
// translation for checkers excludes that endpoint.
var inEndpoint = regexp.MustCompile(`^(load_assignment\.)?endpoints\[\d+\]\.lb_endpoints\[\d+\]`)

// Violations returns the broken rules that concern the whole resource: its own, the first
// thousand of them, and Envoy's for building a cluster and for its endpoints.
func Violations(message proto.Message) []yamlpb.Violation {
	violations := yamlpb.ValidateExcept(message, inEndpoint.MatchString)
	switch m := message.(type) {
	case *clusterv3.Cluster:
		violations = append(violations, unbuildable(m)...)
		for _, v := range unusable(m.GetLoadAssignment()) {
			violations = append(violations, yamlpb.Violation{Field: "load_assignment." + v.Field, Reason: v.Reason})
		}
	case *endpointv3.ClusterLoadAssignment:
		violations = append(violations, unusable(m)...)
	}
	return violations
}

// Name reads the name, whatever the type of the resource, out of a message that may be unreadable
// otherwise.
func Name(data []byte) string {
	name, _ := fields.Text(data, fields.Name)
	return strings.ToValidUTF8(name, "")
}
