package yamlpb

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

// Parts is a YAML document for Envoy that ends with a list, cut into the elements of the
// list. Each can be parsed alone, so that the nodes of a large document need not be in
// memory together, and by several goroutines.
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
// style. It returns false for any other document, and where it is not certain: parse that as a
// whole. So it does for one with anchors, because an element may refer to another.
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

// splittable reports whether a text has printable ASCII alone, so that each line ends with \n for
// YAML too, and no anchor.
func splittable(data []byte) bool {
	for _, b := range data {
		if !usual[b] {
			return false
		}
	}
	return true
}

// usual has the characters of a text that may be split, because a look into a table is quick.
var usual = func() (is [256]bool) {
	for b := ' '; b <= '~'; b++ {
		is[b] = b != '&'
	}
	is['\n'] = true
	return is
}()

// cutHead cuts a text at the first element of a list at the top. It returns nothing if it
// finds none.
func cutHead(data []byte, list string) (head, rest []byte) {
	for at := 0; at < len(data); {
		end := lineEnd(data, at)
		line := bytes.TrimRight(data[at:end], " \n")
		if at = end; string(line) != list+":" {
			continue
		}
		for at < len(data) && isBlank(data[at:lineEnd(data, at)]) {
			at = lineEnd(data, at)
		}
		return data[:at], data[at:]
	}
	return nil, nil
}

// lineEnd returns where the line ends that begins at a place, after its \n.
func lineEnd(data []byte, at int) int {
	if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(data)
}

// isBlank reports whether a line has nothing but a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimLeft(line, " ")
	return len(line) == 0 || line[0] == '\n' || line[0] == '#'
}

// cut cuts a text before each dash that is as far to the right as the first one. All that
// belongs to an element is farther to the right. If a text in quotes or a flow collection
// is cut, the part is no valid YAML.
func (p *Parts) cut(line int, data []byte) bool {
	indent := indentOf(data)
	start := 0
	for at := 0; at < len(data); line++ {
		end := lineEnd(data, at)
		of := data[at:end]
		switch {
		case indentOf(of) == indent && isDash(of[indent:]):
			if n := len(p.texts); n > 0 {
				p.texts[n-1].data = data[start:at]
			}
			start = at
			p.texts = append(p.texts, text{line: line})
		case isBlank(of):
		case indentOf(of) <= indent:
			return false
		}
		at = end
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

// Len returns how many elements there are.
func (p *Parts) Len() int { return len(p.texts) }

var errNotAlone = errors.New("is no element of its own, or has warnings")

// Parse parses one element. Several goroutines may parse different ones. If it fails, parse
// the whole document, which says why.
func (p *Parts) Parse(i int) (Node, error) {
	of := p.texts[i]
	doc := &document{file: p.file, envoy: true}
	root, err := p.root(doc, of)
	if err != nil {
		return Node{}, err
	}
	return p.node(doc, i, root)
}

// ParsePacked parses one element whose endpoints are plain, and returns false for others. Decode
// packs them into their localities then, and is quick. But it says less of what is wrong: if
// anything is, Parse it instead.
func (p *Parts) ParsePacked(i int) (Node, bool) {
	of := p.texts[i]
	doc := &document{file: p.file, envoy: true}
	doc.allow(0, len(of.data))
	root := quick(of.data, of.line+1, &packer{})
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
func (p *Parts) root(doc *document, of text) (*yaml.Node, error) {
	marks, err := measure(of.data)
	if err != nil {
		return nil, err
	}
	doc.allow(marks, len(of.data))
	if root := quick(of.data, of.line+1, nil); root != nil {
		return root, nil
	}
	root, _, err := parseYAML(doc, of.data)
	if err != nil {
		return nil, err
	}
	moveDown(root, of.line)
	return root, nil
}

// moveDown adds lines to the places of nodes.
func moveDown(n *yaml.Node, lines int) {
	n.Line += lines
	for _, child := range n.Content {
		moveDown(child, lines)
	}
}
