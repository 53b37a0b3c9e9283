package yamlpb

import (
	"fmt"
	"slices"
	"strings"

	"hdsd/envoy"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// decoder walks the nodes along the descriptor of a message and collects problems.
type decoder struct {
	doc      *document
	problems []Problem
	depth    int
	except   []string    // fields of the next message to skip
	seen     []seenField // fields so far of the mappings being decoded, outer ones first
	paths    []path      // paths of the values being decoded, outer ones first; not kept

	endpoints envoy.EndpointMaker
	inAny     int // number of messages in an Any being decoded
}

// descend calls decode with the path of a value below another.
func (d *decoder) descend(p path, decode func(pos *path)) {
	n := len(d.paths)
	d.paths = append(d.paths, p)
	decode(&d.paths[n])
	d.paths = d.paths[:n]
}

func (d *decoder) problem(n *yaml.Node, pos *path, format string, args ...any) {
	switch {
	case d.full():
		return
	case len(d.problems) == maxProblems:
		format, args = "there are more problems than the %d shown", []any{maxProblems}
	}
	d.problems = append(d.problems, Problem{
		File: d.doc.file, Line: n.Line, Field: pos.String(), Message: fmt.Sprintf(format, args...),
	})
}

// full reports whether further problems are dropped.
func (d *decoder) full() bool { return len(d.problems) > maxProblems }

// enter resolves an alias and charges the visit to the budget. It returns false if a
// limit is reached; else call leave afterwards.
func (d *decoder) enter(n *yaml.Node, pos *path) (*yaml.Node, bool) {
	n = resolve(n)
	spent := d.doc.budget < 0
	d.doc.budget -= cost(n)
	switch {
	case spent:
	case d.doc.budget < 0:
		d.problem(n, pos, "the aliases of this file stand for too much: write out less by alias")
	case d.depth >= maxDepth:
		d.problem(n, pos, "nested deeper than %d", maxDepth)
	default:
		d.depth++
		return n, true
	}
	return nil, false
}

func (d *decoder) leave() { d.depth-- }

// cost returns the cost of visiting a value, including its names.
func cost(n *yaml.Node) int {
	units := 1 + len(n.Content) + len(n.Value)/64
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			units += len(resolve(n.Content[i]).Value) / 64
		}
	}
	return units
}

// message decodes any message, well-known types included.
func (d *decoder) message(n *yaml.Node, pos *path, m protoreflect.Message) {
	except := d.except
	d.except = nil
	n, ok := d.enter(n, pos)
	if !ok {
		return
	}
	defer d.leave()
	if d.wellKnown(n, pos, m) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.problem(n, pos, "needs a mapping (fields of %s), not %s", m.Descriptor().Name(), describe(n))
		return
	}
	d.fields(n, pos, m, except)
}

func (d *decoder) fields(n *yaml.Node, pos *path, m protoreflect.Message, except []string) {
	start := len(d.seen)
	defer func() { d.seen = d.seen[:start] }()
	skipped := make([]int, len(except))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if j := slices.Index(except, key.Value); j >= 0 {
			if skipped[j]++; skipped[j] == 2 {
				d.problem(key, pos.unknown(key.Value), "is given a second time")
			}
			continue
		}
		field := d.lookup(key, pos, m.Descriptor())
		if field == nil || !d.first(d.seen[start:], key, pos, field, isNull(resolve(value))) {
			continue
		}
		d.descend(path{parent: pos, name: field.TextName()}, func(pos *path) { d.field(value, pos, m, field) })
	}
}

// seenField is a field that a mapping already has.
type seenField struct {
	field protoreflect.FieldDescriptor
	line  int
	null  bool
}

// first records a field of a mapping, given those before it. It returns false if the field is
// not allowed.
func (d *decoder) first(before []seenField, key *yaml.Node, pos *path, field protoreflect.FieldDescriptor, null bool) bool {
	for _, g := range before {
		if g.field == field {
			d.problem(key, pos.field(field.TextName()), "is given a second time (first on line %d)", g.line)
			return false
		}
		if oneof := field.ContainingOneof(); oneof != nil && g.field.ContainingOneof() == oneof && !null && !g.null {
			d.problem(key, pos.field(field.TextName()), "cannot stand beside %s (line %d): only one of %s is possible",
				g.field.TextName(), g.line, fieldNames(oneof.Fields()))
			return false
		}
	}
	d.seen = append(d.seen, seenField{field, key.Line, null})
	return true
}

func (d *decoder) lookup(key *yaml.Node, pos *path, m protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if key.Kind != yaml.ScalarNode {
		d.problem(key, pos, "a field's name cannot be %s", describe(key))
		return nil
	}
	if key.Tag == "!!merge" {
		d.problem(key, pos, "merge keys (<<) are not supported: write the fields out, or use an alias for a whole value")
		return nil
	}
	fields := m.Fields()
	if field := fields.ByJSONName(key.Value); field != nil {
		return field
	}
	if field := fields.ByTextName(key.Value); field != nil {
		return field
	}
	if !d.full() {
		d.problem(key, pos.unknown(key.Value), "is not a field of %s%s", m.FullName(), suggestField(key.Value, fields))
	}
	return nil
}

func (d *decoder) field(n *yaml.Node, pos *path, m protoreflect.Message, field protoreflect.FieldDescriptor) {
	if isNull(resolve(n)) && !takesNull(field) {
		return
	}
	switch {
	case isPacked(n):
		d.pack(n, pos, m, field)
	case field.IsMap():
		d.mapping(n, pos, m.Mutable(field).Map(), field)
	case field.IsList():
		d.list(n, pos, m.Mutable(field).List(), field)
	case field.Message() != nil:
		d.message(n, pos, m.Mutable(field).Message())
	default:
		if value, ok := d.scalar(n, pos, field); ok {
			m.Set(field, value)
		}
	}
}

// takesNull reports whether null is a value of the field rather than its absence.
func takesNull(field protoreflect.FieldDescriptor) bool {
	if field.IsList() || field.IsMap() {
		return false
	}
	return field.Message() != nil && field.Message().FullName() == "google.protobuf.Value" ||
		field.Enum() != nil && field.Enum().FullName() == "google.protobuf.NullValue"
}

func (d *decoder) list(n *yaml.Node, pos *path, list protoreflect.List, field protoreflect.FieldDescriptor) {
	n, ok := d.enter(n, pos)
	if !ok {
		return
	}
	defer d.leave()
	elements := n.Content
	switch {
	case n.Kind == yaml.SequenceNode:
	case d.doc.envoy: // a list of one
		elements = []*yaml.Node{n}
	default:
		d.problem(n, pos, "needs a list, not %s: put \"- \" before each element, or all in []", describe(n))
		return
	}
	for i, element := range elements {
		d.descend(path{parent: pos, index: i}, func(pos *path) { d.listed(element, pos, list, field) })
	}
}

// listed decodes an element of a list, and appends it.
func (d *decoder) listed(n *yaml.Node, pos *path, list protoreflect.List, field protoreflect.FieldDescriptor) {
	if d.doc.envoy && resolve(n).Kind == yaml.SequenceNode && !holdsLists(field) {
		d.list(n, pos, list, field)
		return
	}
	if value, ok := d.element(n, pos, field, list.NewElement); ok {
		list.Append(value)
	}
}

// holdsLists reports whether an element of a list may be a list itself. If not, Envoy
// takes the elements of one.
func holdsLists(field protoreflect.FieldDescriptor) bool {
	m := field.Message()
	return m != nil && (m.FullName() == "google.protobuf.Value" || m.FullName() == "google.protobuf.ListValue")
}

// element decodes an element of a list or a value of a map.
func (d *decoder) element(n *yaml.Node, pos *path, field protoreflect.FieldDescriptor, blank func() protoreflect.Value) (protoreflect.Value, bool) {
	if isNull(resolve(n)) && !(field.Message() != nil && field.Message().FullName() == "google.protobuf.Value") {
		d.problem(n, pos, "cannot be null: remove it or give it a value")
		return protoreflect.Value{}, false
	}
	if field.Message() == nil {
		return d.scalar(n, pos, field)
	}
	if value, ok := d.listedEndpoint(n, field); ok {
		return value, true
	}
	value := blank()
	d.message(n, pos, value.Message())
	return value, true
}

func (d *decoder) mapping(n *yaml.Node, pos *path, m protoreflect.Map, field protoreflect.FieldDescriptor) {
	n, ok := d.enter(n, pos)
	if !ok {
		return
	}
	defer d.leave()
	if n.Kind != yaml.MappingNode {
		d.problem(n, pos, "needs a mapping, not %s", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		pos := pos.key(clip(key.Value))
		parsed, ok := d.mapKey(key, pos, field.MapKey())
		if !ok {
			continue
		}
		if m.Has(parsed) {
			d.problem(key, pos, "is given a second time")
			continue
		}
		if decoded, ok := d.element(value, pos, field.MapValue(), m.NewValue); ok {
			m.Set(parsed, decoded)
		}
	}
}

func (d *decoder) mapKey(key *yaml.Node, pos *path, field protoreflect.FieldDescriptor) (protoreflect.MapKey, bool) {
	if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
		d.problem(key, pos, "a key must be a plain text")
		return protoreflect.MapKey{}, false
	}
	// In JSON every key is a string, whatever its type.
	text := *key
	if field.Kind() == protoreflect.BoolKind && (key.Value == "true" || key.Value == "false") {
		text.Tag = "!!bool"
	} else {
		text.Tag = "!!str"
	}
	value, ok := d.scalar(&text, pos, field)
	if !ok {
		return protoreflect.MapKey{}, false
	}
	return value.MapKey(), true
}

func fieldNames(fields protoreflect.FieldDescriptors) string {
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).TextName()
	}
	return strings.Join(names, ", ")
}
