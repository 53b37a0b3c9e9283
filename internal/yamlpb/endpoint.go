package yamlpb

import (
	"math"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var lbEndpoint = (&endpointv3.LbEndpoint{}).ProtoReflect().Descriptor()

// plainEndpoint decodes an element of a list that is an LbEndpoint with an address and a port,
// and nothing else. Almost all endpoints are such ones, and there may be millions. It returns
// false for any other, which the general way decodes, or says what is wrong with it.
func (d *decoder) plainEndpoint(n *yaml.Node, field protoreflect.FieldDescriptor) (value protoreflect.Value, ok bool) {
	if field.Message() != lbEndpoint {
		return value, false
	}
	for _, name := range [...]string{"endpoint", "address", "socket_address"} {
		if n.Kind != yaml.MappingNode || len(n.Content) != 2 || !isName(n.Content[0], name) {
			return value, false
		}
		n = n.Content[1]
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 4 || !isName(n.Content[0], "address") || !isName(n.Content[2], "port_value") {
		return value, false
	}
	host, number := n.Content[1], n.Content[3]
	port, ok := plainInteger(number.Value)
	if !ok || port < 0 || port > math.MaxUint32 || number.Kind != yaml.ScalarNode || number.Tag != "!!int" ||
		host.Kind != yaml.ScalarNode || host.Tag != "!!str" || !isPlainHost(host.Value) {
		return value, false
	}
	const visited, deeper = 16, 6 // values and names; levels
	if d.doc.budget < visited || d.depth+deeper > maxDepth {
		return value, false
	}
	d.doc.budget -= visited
	return protoreflect.ValueOfMessage(d.endpoints.Endpoint(host.Value, uint32(port)).ProtoReflect()), true
}

func isName(n *yaml.Node, name string) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == name
}

// isPlainHost reports whether a text has only the characters of addresses and host names.
func isPlainHost(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isWord(c) && c != ':' {
			return false
		}
	}
	return len(text) <= quickName
}
