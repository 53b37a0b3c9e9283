package yamlpb

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
)

// Node is a value in a document. The zero Node has no value.
type Node struct {
	doc  *document
	yaml *yaml.Node
	path *path
}

// path is the place of a value, innermost first; nil is the document itself.
type path struct {
	parent *path
	name   string // of a field or, in quotes, a map's key; "" for an element
	index  int
}

func (p *path) field(name string) *path { return &path{parent: p, name: name} }
func (p *path) key(key string) *path    { return &path{parent: p, name: strconv.Quote(key)} }
func (p *path) element(i int) *path     { return &path{parent: p, index: i} }

// unknown returns the path of an unknown field.
func (p *path) unknown(name string) *path {
	if name == "" || name[0] == '"' {
		return p.key(clip(name))
	}
	return p.field(clip(name))
}

func (p *path) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.name == "":
		return fmt.Sprintf("%s[%d]", before, p.index)
	case p.name[0] == '"':
		return fmt.Sprintf("%s[%s]", before, p.name)
	case before == "":
		return p.name
	default:
		return before + "." + p.name
	}
}

// resolve returns the anchor of an alias. (YAML has no alias of an alias.)
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// Line returns the line at which the value begins.
func (n Node) Line() int {
	if n.yaml == nil {
		return 0
	}
	return n.yaml.Line
}

// Path returns the path of the value in its document.
func (n Node) Path() string { return n.path.String() }

// IsMapping reports whether the value has fields.
func (n Node) IsMapping() bool { return n.yaml != nil && resolve(n.yaml).Kind == yaml.MappingNode }

// IsList reports whether the value has elements.
func (n Node) IsList() bool { return n.yaml != nil && resolve(n.yaml).Kind == yaml.SequenceNode }

// Field returns the value of a field by its proto name, in either spelling. A null
// counts as absent.
func (n Node) Field(name string) (Node, bool) {
	if !n.IsMapping() {
		return Node{}, false
	}
	content := resolve(n.yaml).Content
	for i := 0; i+1 < len(content); i += 2 {
		if sameName(resolve(content[i]).Value, name) && !isNull(resolve(content[i+1])) {
			return Node{n.doc, content[i+1], n.path.field(name)}, true
		}
	}
	return Node{}, false
}

// Repeated returns a problem for each repeated field of a mapping. It is for mappings
// that are not decoded themselves.
func (n Node) Repeated() []Problem {
	if !n.IsMapping() {
		return nil
	}
	var problems []Problem
	seen := make(map[string]bool)
	content := resolve(n.yaml).Content
	for i := 0; i+1 < len(content); i += 2 {
		key := resolve(content[i])
		if plain := plainName(key.Value); !seen[plain] {
			seen[plain] = true
		} else if len(problems) < maxProblems {
			problems = append(problems, Problem{
				File: n.doc.file, Line: key.Line, Field: n.path.unknown(key.Value).String(), Message: "is given a second time",
			})
		}
	}
	return problems
}

// Elements returns the elements of a list. In a document for Envoy, a mapping is a list
// of one.
func (n Node) Elements() []Node {
	if n.doc != nil && n.doc.envoy && n.IsMapping() {
		return []Node{n}
	}
	if !n.IsList() {
		return nil
	}
	content := resolve(n.yaml).Content
	elements := make([]Node, len(content))
	for i, element := range content {
		elements[i] = Node{n.doc, element, n.path.element(i)}
	}
	return elements
}

// Text returns the value if it is a string.
func (n Node) Text() (string, bool) {
	if n.yaml == nil {
		return "", false
	}
	value := resolve(n.yaml)
	return value.Value, value.Kind == yaml.ScalarNode && value.Tag == "!!str"
}

// Problem makes a problem of the field at a path below n, with the line of the nearest
// value in the document.
func (n Node) Problem(field, format string, args ...any) Problem {
	problem := Problem{Line: n.locate(field), Message: fmt.Sprintf(format, args...), Field: n.Path()}
	if n.doc != nil {
		problem.File = n.doc.file
	}
	if problem.Field != "" && field != "" && field[0] != '[' {
		problem.Field += "."
	}
	problem.Field += field
	return problem
}

// Has reports whether the document has a value at a path below n.
func (n Node) Has(field string) bool {
	_, whole := n.descend(field)
	return whole
}

func (n Node) locate(field string) int {
	nearest, _ := n.descend(field)
	return nearest.Line()
}

// descend follows a path such as health_checks[0].timeout as far as it exists.
func (n Node) descend(field string) (Node, bool) {
	for part := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next, ok := n.Field(part)
		if index, err := strconv.Atoi(part); err == nil && n.IsList() {
			content := resolve(n.yaml).Content
			if ok = index >= 0 && index < len(content); ok {
				next = Node{n.doc, content[index], n.path.element(index)}
			}
		}
		if !ok {
			return n, false
		}
		n = next
	}
	return n, true
}

// sameName reports whether two spellings, such as snake_case and lowerCamelCase, mean
// the same field.
func sameName(a, b string) bool { return a == b || plainName(a) == plainName(b) }

func plainName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// Decode decodes the value into m, without the fields in except. If there are problems,
// m has the readable rest.
func (n Node) Decode(m proto.Message, except ...string) []Problem {
	if n.yaml == nil {
		return nil
	}
	d := &decoder{doc: n.doc, except: except}
	d.message(n.yaml, n.path, m.ProtoReflect())
	return d.problems
}
