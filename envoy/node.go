package envoy

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/internal/printable"
)

// CheckNode refuses a node with text that cannot be shown: control characters, and those that
// turn the direction of writing. Its error is written for the node's owner.
func CheckNode(n *corev3.Node) error {
	for _, part := range []struct{ name, text string }{
		{"node.id", n.GetId()}, {"node.cluster", n.GetCluster()},
		{"node.locality.region", n.GetLocality().GetRegion()}, {"node.locality.zone", n.GetLocality().GetZone()},
		{"node.locality.sub_zone", n.GetLocality().GetSubZone()},
		{"node.user_agent_name", n.GetUserAgentName()}, {"node.user_agent_version", n.GetUserAgentVersion()},
	} {
		if !printable.Is(part.text) {
			return fmt.Errorf("%s is %.200q, which has a character that cannot be shown: use plain text", part.name, part.text)
		}
	}
	return nil
}
