package yamlpb

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
)

// Node is a value in a document. The zero Node is none.
type Node struct {
	doc  *document
	yaml *yaml.Node
	path *path
}

// path is where a value is, innermost first; nil is the document itself.
type path struct {
	parent *path
	name   string // of a field or, in quotes, a map's key; "" for an element
	index  int
}

func (p *path) field(name string) *path { return &path{parent: p, name: name} }
func (p *path) key(key string) *path    { return &path{parent: p, name: strconv.Quote(key)} }
func (p *path) element(i int) *path     { return &path{parent: p, index: i} }

// unknown is the path of a field that there is not.
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

// resolve follows an alias to what it stands for. (An alias of an alias is not
// YAML.)
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// Line is where the value begins.
func (n Node) Line() int {
	if n.yaml == nil {
		return 0
	}
	return n.yaml.Line
}

// Path is the path of the value in its document.
func (n Node) Path() string { return n.path.String() }

// IsMapping tells whether the value has fields.
func (n Node) IsMapping() bool { return n.yaml != nil && resolve(n.yaml).Kind == yaml.MappingNode }

// IsList tells whether the value has elements.
func (n Node) IsList() bool { return n.yaml != nil && resolve(n.yaml).Kind == yaml.SequenceNode }

// Field gives the value of a field by its proto name, however it is spelled in
// the document. A null is as good as absent.
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

// Repeated gives a problem for each field of a mapping that is there twice. It
// is for mappings that are not decoded themselves.
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

// Elements gives the elements of a list. Where Envoy's spelling counts, a
// mapping is a list of one.
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

// Text gives the value where it is a text.
func (n Node) Text() (string, bool) {
	if n.yaml == nil {
		return "", false
	}
	value := resolve(n.yaml)
	return value.Value, value.Kind == yaml.ScalarNode && value.Tag == "!!str"
}

// Problem is a problem with the field at a path below n, with the line of the
// nearest value that the document has.
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

// Has tells whether the document has a value at a path below n.
func (n Node) Has(field string) bool {
	_, whole := n.descend(field)
	return whole
}

func (n Node) locate(field string) int {
	nearest, _ := n.descend(field)
	return nearest.Line()
}

// descend follows a path as health_checks[0].timeout as far as it goes.
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

// sameName tells whether two spellings, as snake_case and lowerCamelCase, are
// of one field.
func sameName(a, b string) bool { return a == b || plainName(a) == plainName(b) }

func plainName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// Decode puts the value into m, the fields of the value named in except left
// out. With problems, m holds what could be read.
func (n Node) Decode(m proto.Message, except ...string) []Problem {
	if n.yaml == nil {
		return nil
	}
	d := &decoder{doc: n.doc, except: except}
	d.message(n.yaml, n.path, m.ProtoReflect())
	return d.problems
}
