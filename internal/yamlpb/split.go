package yamlpb

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

// Parts is a YAML document for Envoy that ends with a list, cut into the elements of the list.
// Each can be parsed separately, so that the nodes of a large document need not be in memory
// together, and by several goroutines.
type Parts struct {
	Head Node // the document, with null for the list

	file, list string
	texts      []text
}

// text is the text of an element.
type text struct {
	line int // lines before it
	data []byte
}

// SplitAsEnvoy cuts a document whose last field at the top is a list of this name in block
// style. It returns false for any other document, or if uncertain: parse that as a whole. This
// includes one with anchors, because an element may refer to another.
func SplitAsEnvoy(file, list string, data []byte) (*Parts, bool) {
	p := &Parts{file: file, list: list}
	if (&document{file: file}).json() || !splittable(data) {
		return nil, false
	}
	if _, err := measure(data); err != nil {
		return nil, false
	}
	head, rest := cutHead(data, list)
	if rest == nil || !p.cut(bytes.Count(head, []byte{'\n'}), rest) || p.short(len(rest)) {
		return nil, false
	}
	root, problems := ParseAsEnvoy(file, head)
	if len(problems) > 0 || !root.IsMapping() {
		return nil, false
	}
	p.Head = root
	return p, true
}

// splittable reports whether a text has only printable ASCII, so that each line ends with \n for
// YAML too, and no anchor.
func splittable(data []byte) bool {
	for _, b := range data {
		if !usual[b] {
			return false
		}
	}
	return true
}

// usual has the characters of a splittable text, for a quick lookup.
var usual = func() (set [256]bool) {
	for b := ' '; b <= '~'; b++ {
		set[b] = b != '&'
	}
	set['\n'] = true
	return set
}()

// cutHead cuts a text at the first element of a list at the top. It returns nothing if it
// finds none.
func cutHead(data []byte, list string) (head, rest []byte) {
	for offset := 0; offset < len(data); {
		end := lineEnd(data, offset)
		line := bytes.TrimRight(data[offset:end], " \n")
		if offset = end; string(line) != list+":" {
			continue
		}
		for offset < len(data) && isBlank(data[offset:lineEnd(data, offset)]) {
			offset = lineEnd(data, offset)
		}
		return data[:offset], data[offset:]
	}
	return nil, nil
}

// lineEnd returns the end of the line that begins at offset, after its \n.
func lineEnd(data []byte, offset int) int {
	if n := bytes.IndexByte(data[offset:], '\n'); n >= 0 {
		return offset + n + 1
	}
	return len(data)
}

// isBlank reports whether a line has at most a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimLeft(line, " ")
	return len(line) == 0 || line[0] == '\n' || line[0] == '#'
}

// cut cuts a text before each dash in the column of the first one. All parts of an element are
// farther to the right. If it cuts a quoted text or a flow collection, the part is no valid
// YAML.
func (p *Parts) cut(line int, data []byte) bool {
	indent := indentOf(data)
	start := 0
	for offset := 0; offset < len(data); line++ {
		end := lineEnd(data, offset)
		segment := data[offset:end]
		switch {
		case indentOf(segment) == indent && isDash(segment[indent:]):
			if n := len(p.texts); n > 0 {
				p.texts[n-1].data = data[start:offset]
			}
			start = offset
			p.texts = append(p.texts, text{line: line})
		case isBlank(segment):
		case indentOf(segment) <= indent:
			return false
		}
		offset = end
	}
	if len(p.texts) == 0 {
		return false
	}
	p.texts[len(p.texts)-1].data = data[start:]
	return true
}

// short reports whether there are many elements of few bytes: a parser for each would cost more
// than one for all.
func (p *Parts) short(size int) bool {
	const many, few = 1000, 64
	return len(p.texts) > many && size/len(p.texts) < few
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

func isDash(text []byte) bool {
	return len(text) > 1 && text[0] == '-' && (text[1] == ' ' || text[1] == '\n')
}

// Len returns the number of elements.
func (p *Parts) Len() int { return len(p.texts) }

var errNotAlone = errors.New("is no element of its own, or has warnings")

// Parse parses one element. Several goroutines may parse different ones. If it fails, parse the
// whole document for the reason.
func (p *Parts) Parse(i int) (Node, error) {
	part := p.texts[i]
	doc := &document{file: p.file, envoy: true}
	root, err := p.root(doc, part)
	if err != nil {
		return Node{}, err
	}
	return p.node(doc, i, root)
}

// ParsePacked parses one element with plain endpoints, and returns false for others. Decode then
// packs them into their localities, and is quick. But it reports less about faults: if there are
// any, Parse it instead.
func (p *Parts) ParsePacked(i int) (Node, bool) {
	part := p.texts[i]
	doc := &document{file: p.file, envoy: true}
	doc.allow(0, len(part.data))
	root := quick(part.data, part.line+1, &packer{})
	if root == nil {
		return Node{}, false
	}
	n, err := p.node(doc, i, root)
	return n, err == nil
}

// node returns the node of an element, given those of a list of one.
func (p *Parts) node(doc *document, i int, root *yaml.Node) (Node, error) {
	convertForEnvoy(doc, root)
	if len(doc.warnings) > 0 || root.Kind != yaml.SequenceNode || len(root.Content) != 1 {
		return Node{}, errNotAlone
	}
	return Node{doc, root.Content[0], (*path)(nil).field(p.list).element(i)}, nil
}

// root returns the nodes of an element, a list of one, with their lines in the document.
func (p *Parts) root(doc *document, part text) (*yaml.Node, error) {
	marks, err := measure(part.data)
	if err != nil {
		return nil, err
	}
	doc.allow(marks, len(part.data))
	if root := quick(part.data, part.line+1, nil); root != nil {
		return root, nil
	}
	root, _, err := parseYAML(doc, part.data)
	if err != nil {
		return nil, err
	}
	moveDown(root, part.line)
	return root, nil
}

// moveDown adds lines to the places of nodes.
func moveDown(n *yaml.Node, lines int) {
	n.Line += lines
	for _, child := range n.Content {
		moveDown(child, lines)
	}
}
