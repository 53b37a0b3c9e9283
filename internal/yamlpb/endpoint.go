package yamlpb

import (
	"math"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var lbEndpoint = (&endpointv3.LbEndpoint{}).ProtoReflect().Descriptor()

// listedEndpoint decodes an element of a list that is a plain endpoint. It returns false for any
// other, which the general way decodes, or reports as faulty.
func (d *decoder) listedEndpoint(n *yaml.Node, field protoreflect.FieldDescriptor) (value protoreflect.Value, ok bool) {
	if field.Message() != lbEndpoint {
		return value, false
	}
	const visited, deeper = 16, 6 // values and names; levels
	host, port, ok := plainEndpoint(n)
	if !ok || d.doc.budget < visited || d.depth+deeper > maxDepth {
		return value, false
	}
	d.doc.budget -= visited
	return protoreflect.ValueOfMessage(d.endpoints.Endpoint(host.Value, port).ProtoReflect()), true
}

// plainEndpoint returns the address and the port of an LbEndpoint with these and nothing else,
// in the usual order. Almost all endpoints are such ones, and there may be millions.
func plainEndpoint(n *yaml.Node) (host *yaml.Node, port uint32, ok bool) {
	for _, name := range [...]string{"endpoint", "address", "socket_address"} {
		if n.Kind != yaml.MappingNode || len(n.Content) != 2 || !isName(n.Content[0], name) {
			return nil, 0, false
		}
		n = n.Content[1]
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 4 || !isName(n.Content[0], "address") || !isName(n.Content[2], "port_value") {
		return nil, 0, false
	}
	host, number := n.Content[1], n.Content[3]
	value, ok := plainInteger(number.Value)
	if !ok || value < 0 || value > math.MaxUint32 || number.Kind != yaml.ScalarNode || number.Tag != "!!int" ||
		host.Kind != yaml.ScalarNode || host.Tag != "!!str" || !isPlainHost(host.Value) {
		return nil, 0, false
	}
	return host, uint32(value), true
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
	return text != "" && len(text) <= quickName
}
