package yamlpb

import (
	"strconv"
	"strings"

	"hdsd/internal/endpointpb"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// packer packs lists of plain endpoints: it encodes the elements as it reads them, without nodes
// and messages. There may be millions of them, and nearly all files write one like the other. So
// it looks how the first is written, and then only for the address and the port of those that
// are written the same way.
type packer struct {
	wire []byte // the elements of the list so far

	// How the last one was written that was parsed.
	column                 int
	before, between, after string // the text around its address and its port
	quoted                 bool   // the address
	lines                  int    // ends of lines in that text
}

const (
	// packed is the tag of a packed list. Its value is the encoded elements. It has no kind, so
	// that it is nothing that could be decoded anywhere else.
	packed = "!!packed"

	endpointList = "lb_endpoints"

	inFlow = -1 // in place of a column
)

func isPacked(n *yaml.Node) bool { return n.Kind == 0 && n.Tag == packed }

// packerOf returns what packs the list of a name; nil: nothing does.
func (q *quickParser) packerOf(name *yaml.Node) *packer {
	if name.Value != endpointList {
		return nil
	}
	return q.packer
}

// add packs the element that was read last into a list, and takes note how it is written. It
// fails if that is no plain endpoint.
func (p *packer) add(q *quickParser, list *yaml.Node, column int, at span) {
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
	p.wire = endpointpb.AppendEndpoint(p.wire, host.Value, number)
	address, port := q.values[0], q.values[1]
	p.before, p.between, p.after = q.text[at.start:address.start], q.text[address.end:port.start], q.text[port.end:at.end]
	p.column, p.quoted = column, host.Style != 0
	p.lines = strings.Count(p.before, "\n") + strings.Count(p.between, "\n") + strings.Count(p.after, "\n")
}

// take packs the element that begins here, if it is written as the last one. If not, it
// returns false and reads nothing.
func (p *packer) take(q *quickParser, column int) bool {
	if p == nil || p.before == "" || p.column != column {
		return false
	}
	rest, ok := strings.CutPrefix(q.text[q.at:], p.before)
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
	p.wire = endpointpb.AppendEndpoint(p.wire, host, uint32(port))
	q.at, q.line = len(q.text)-len(rest), q.line+p.lines
	return true
}

// takeLines does the same in block style, where the element has to end with its line.
func (p *packer) takeLines(q *quickParser, column, indent int) bool {
	if p == nil {
		return false
	}
	at, line, size := q.at, q.line, len(p.wire)
	if !p.take(q, column) {
		return false
	}
	if q.endLine(); !q.failed && q.column <= indent {
		return true
	}
	q.at, q.line, q.column, q.failed, p.wire = at, line, indent, false, p.wire[:size]
	return false
}

// finish returns a list, packed if it has elements that were.
func (p *packer) finish(n *yaml.Node) *yaml.Node {
	if p == nil || len(p.wire) == 0 {
		return n
	}
	n.Kind, n.Style, n.Tag, n.Value = 0, 0, packed, string(p.wire)
	p.wire = p.wire[:0]
	return n
}

// pack decodes a packed list.
func (d *decoder) pack(n *yaml.Node, at *path, m protoreflect.Message, field protoreflect.FieldDescriptor) {
	group, ok := m.Interface().(*endpointv3.LocalityLbEndpoints)
	if !ok || field.Message() != lbEndpoint || d.inAny > 0 {
		d.problem(n, at, "cannot be packed here")
		return
	}
	endpointpb.Pack(group, []byte(n.Value))
}
