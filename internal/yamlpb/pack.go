package yamlpb

import (
	"strconv"
	"strings"

	"hdsd/envoy"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// packer packs lists of plain endpoints: it encodes the elements as it reads them, without nodes
// and messages. There may be millions of them, and nearly all files write one like the other. So
// it records the form of the first one, and then reads only the address and the port of elements
// in the same form.
type packer struct {
	wire []byte // the elements of the list so far

	// The form of the last parsed element.
	column                 int
	before, between, after string // the text around its address and its port
	quoted                 bool   // the address is quoted
	lines                  int    // ends of lines in that text
}

const (
	// packed is the tag of a packed list. Its value is the encoded elements. It has no kind, so
	// that nothing else decodes it.
	packed = "!!packed"

	endpointList = "lb_endpoints"

	inFlow = -1 // in place of a column
)

func isPacked(n *yaml.Node) bool { return n.Kind == 0 && n.Tag == packed }

// packerOf returns the packer for the list of a name, or nil.
func (q *quickParser) packerOf(name *yaml.Node) *packer {
	if name.Value != endpointList {
		return nil
	}
	return q.packer
}

// add packs the element that was read last into a list, and records its form. It fails if that
// is no plain endpoint.
func (p *packer) add(q *quickParser, list *yaml.Node, column int, place span) {
	if p == nil || q.failed {
		return
	}
	last := len(list.Content) - 1
	host, number, ok := plainEndpoint(list.Content[last])
	if !ok {
		q.fail()
		return
	}
	list.Content = list.Content[:last]
	p.wire = envoy.AppendLbEndpoint(p.wire, host.Value, number)
	address, port := q.values[0], q.values[1]
	p.before, p.between, p.after = q.text[place.start:address.start], q.text[address.end:port.start], q.text[port.end:place.end]
	p.column, p.quoted = column, host.Style != 0
	p.lines = strings.Count(p.before, "\n") + strings.Count(p.between, "\n") + strings.Count(p.after, "\n")
}

// consume packs the element that begins here, if it has the form of the last one. If not, it
// returns false and reads nothing.
func (p *packer) consume(q *quickParser, column int) bool {
	if p == nil || p.before == "" || p.column != column {
		return false
	}
	rest, ok := strings.CutPrefix(q.text[q.offset:], p.before)
	if !ok {
		return false
	}
	size := 0
	for size < len(rest) && (isWord(rest[size]) || rest[size] == ':' && p.quoted) {
		size++
	}
	host := rest[:size]
	if !p.quoted && wordTag(host) != "!!str" || !isPlainHost(host) {
		return false
	}
	if rest, ok = strings.CutPrefix(rest[size:], p.between); !ok {
		return false
	}
	for size = 0; size < len(rest) && isWord(rest[size]); size++ {
	}
	port, err := strconv.ParseUint(rest[:size], 10, 16)
	if err != nil || wordTag(rest[:size]) != "!!int" {
		return false
	}
	if rest, ok = strings.CutPrefix(rest[size:], p.after); !ok {
		return false
	}
	p.wire = envoy.AppendLbEndpoint(p.wire, host, uint32(port))
	q.offset, q.line = len(q.text)-len(rest), q.line+p.lines
	return true
}

// consumeLines is consume in block style, where the element has to end with its line.
func (p *packer) consumeLines(q *quickParser, column, indent int) bool {
	if p == nil {
		return false
	}
	offset, line, size := q.offset, q.line, len(p.wire)
	if !p.consume(q, column) {
		return false
	}
	if q.endLine(); !q.failed && q.column <= indent {
		return true
	}
	q.offset, q.line, q.column, q.failed, p.wire = offset, line, indent, false, p.wire[:size]
	return false
}

// finish returns a list, packed if it has packed elements.
func (p *packer) finish(n *yaml.Node) *yaml.Node {
	if p == nil || len(p.wire) == 0 {
		return n
	}
	n.Kind, n.Style, n.Tag, n.Value = 0, 0, packed, string(p.wire)
	p.wire = p.wire[:0]
	return n
}

// pack decodes a packed list.
func (d *decoder) pack(n *yaml.Node, pos *path, m protoreflect.Message, field protoreflect.FieldDescriptor) {
	group, ok := m.Interface().(*endpointv3.LocalityLbEndpoints)
	if !ok || field.Message() != lbEndpoint || d.inAny > 0 {
		d.problem(n, pos, "cannot be packed here")
		return
	}
	envoy.PackEndpoints(group, []byte(n.Value))
}
