package file

import (
	"regexp"

	"google.golang.org/protobuf/proto"

	"hdsd/config/yamlpb"
)

// inEndpoint is what concerns one endpoint only. It does not condemn the
// cluster: whoever translates it for checkers sets aside that endpoint.
var inEndpoint = regexp.MustCompile(`^(load_assignment\.)?endpoints\[\d+\]\.lb_endpoints\[\d+\]`)

// violations are those of a resource's own rules that concern all of it.
func violations(message proto.Message) []yamlpb.Violation {
	var all []yamlpb.Violation
	for _, violation := range yamlpb.Validate(message) {
		if !inEndpoint.MatchString(violation.Field) {
			all = append(all, violation)
		}
	}
	return all
}
