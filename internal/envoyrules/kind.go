package envoyrules

import (
	"fmt"
	"regexp"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/yamlpb"
)

const typePrefix = "type.googleapis.com/"

// The type URLs of what sources give.
const (
	Cluster    = typePrefix + "envoy.config.cluster.v3.Cluster"
	Assignment = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	Wrapper    = typePrefix + "envoy.service.discovery.v3.Resource" // of one of them
)

// Wrong says what is wrong with the type of a resource.
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

// inEndpoint is what concerns one endpoint only. It does not condemn the
// cluster: whoever translates it for checkers sets aside that endpoint.
var inEndpoint = regexp.MustCompile(`^(load_assignment\.)?endpoints\[\d+\]\.lb_endpoints\[\d+\]`)

// Violations are those of a resource's own rules, and of Envoy's for building a
// cluster, that concern all of it.
func Violations(message proto.Message) []yamlpb.Violation {
	var all []yamlpb.Violation
	for _, violation := range yamlpb.Validate(message) {
		if !inEndpoint.MatchString(violation.Field) {
			all = append(all, violation)
		}
	}
	if cluster, ok := message.(*clusterv3.Cluster); ok {
		all = append(all, unbuildable(cluster)...)
	}
	return all
}

// Name reads field 1, which is the name in all that concerns us, out of a
// message that may not be readable otherwise.
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
