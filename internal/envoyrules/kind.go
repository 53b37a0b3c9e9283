package envoyrules

import (
	"fmt"
	"regexp"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/yamlpb"
)

const typePrefix = "type.googleapis.com/"

// The type URLs of the resources of sources.
const (
	Cluster    = typePrefix + "envoy.config.cluster.v3.Cluster"
	Assignment = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	Wrapper    = typePrefix + "envoy.service.discovery.v3.Resource" // wraps one of them
)

// Wrong says what is wrong with a type URL for a resource; empty if nothing.
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
	all := yamlpb.ValidateExcept(message, inEndpoint.MatchString)
	switch m := message.(type) {
	case *clusterv3.Cluster:
		all = append(all, unbuildable(m)...)
		for _, v := range unusable(m.GetLoadAssignment()) {
			all = append(all, yamlpb.Violation{Field: "load_assignment." + v.Field, Reason: v.Reason})
		}
	case *endpointv3.ClusterLoadAssignment:
		all = append(all, unusable(m)...)
	}
	return all
}

// Name reads field 1, the name in all types of resources here, out of a message that
// may be unreadable otherwise.
func Name(data []byte) string {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return ""
		}
		data = data[n:]
		if number == 1 && kind == protowire.BytesType {
			text, n := protowire.ConsumeBytes(data)
			if n < 0 {
				return ""
			}
			return strings.ToValidUTF8(string(text), "")
		}
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return ""
		}
		data = data[n:]
	}
	return ""
}
