package yamlpb

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// quick parses the YAML that most files of clusters are written in: block mappings and lists,
// flow collections, plain words, numbers, and quoted texts on one line without escapes. It
// makes the same nodes as the library, which takes several times as long. It returns nil
// for anything else, invalid YAML included: the library knows what that is. Lines are counted
// from first. With a packer, it packs the lists of endpoints, and returns nil if one has other
// elements than plain ones.
func quick(data []byte, first int, p *packer) *yaml.Node {
	q := &quickParser{text: string(data), line: first - 1, packer: p}
	q.toLine(0)
	root := q.block(0, nil)
	if q.failed || q.offset < len(q.text) {
		return nil
	}
	return root
}

// quickParser is the state of quick: a place in the text. Each method reads the part that begins
// there, and leaves the place after it. Once failed is set, nothing else counts.
type quickParser struct {
	text   string
	offset int // of the next character
	line   int // its line
	column int // of the first character of the line that is no space
	end    int // end of the text on the last complete line
	failed bool

	room  []yaml.Node  // for future nodes
	pairs []*yaml.Node // for the content of future mappings; most have one name

	packer *packer // nil: lists of endpoints are lists like any other
	values [2]span // of the last values that are words or quoted texts
}

// span is a part of the text.
type span struct{ start, end int }

const (
	quickDepth = 40
	quickRoom  = 32
	quickName  = 500 // characters of a name; YAML allows 1,024 as they are written
)

func (q *quickParser) fail() *yaml.Node {
	q.failed = true
	return &yaml.Node{}
}

func (q *quickParser) node(kind yaml.Kind, style yaml.Style, tag string) *yaml.Node {
	if len(q.room) == 0 {
		q.room = make([]yaml.Node, q.rooms())
	}
	n := &q.room[0]
	q.room = q.room[1:]
	n.Kind, n.Style, n.Tag, n.Line = kind, style, tag, q.line
	return n
}

// rooms returns how many nodes to allocate at a time: a file may have millions of short
// elements.
func (q *quickParser) rooms() int {
	const bytesPerNode = 8 // most nodes have more
	return min(quickRoom, 2+len(q.text)/bytesPerNode)
}

// mapping makes a mapping without names.
func (q *quickParser) mapping(style yaml.Style) *yaml.Node {
	n := q.node(yaml.MappingNode, style, "!!map")
	if len(q.pairs) == 0 {
		q.pairs = make([]*yaml.Node, 2*q.rooms())
	}
	n.Content, q.pairs = q.pairs[:0:2], q.pairs[2:]
	return n
}

// toLine moves to the first character of the next line that has more than a comment, given where
// that line may begin.
func (q *quickParser) toLine(offset int) {
	for start := offset; ; start = offset + 1 {
		q.line++
		offset = start
		for offset < len(q.text) && q.text[offset] == ' ' {
			offset++
		}
		if offset < len(q.text) && q.text[offset] == '#' {
			for offset < len(q.text) && q.text[offset] != '\n' {
				offset++
			}
		}
		if offset >= len(q.text) || q.text[offset] != '\n' {
			q.offset, q.column = offset, offset-start
			break
		}
	}
	if q.offset >= len(q.text) {
		q.column = -1
	}
}

// endLine moves to the next line. Nothing may follow on this one.
func (q *quickParser) endLine() {
	q.end = q.offset
	q.spaces()
	switch {
	case q.offset >= len(q.text):
		q.column = -1
	case q.text[q.offset] == '\n':
		q.toLine(q.offset + 1)
	default:
		q.failed = true
	}
}

func (q *quickParser) spaces() {
	for q.next() == ' ' {
		q.skip()
	}
}

// gap skips spaces and ends of lines within a flow collection.
func (q *quickParser) gap() {
	for q.spaces(); q.next() == '\n'; q.spaces() {
		q.skip()
		q.line++
	}
}

// next returns the next character, 0 at the end.
func (q *quickParser) next() byte {
	if q.offset >= len(q.text) {
		return 0
	}
	return q.text[q.offset]
}

// skip moves by a character, unless it is at the end.
func (q *quickParser) skip() { q.offset = min(q.offset+1, len(q.text)) }

// begins reports whether a text is here.
func (q *quickParser) begins(text string) bool { return strings.HasPrefix(q.text[q.offset:], text) }

// atDash reports whether an element of a list begins here.
func (q *quickParser) atDash() bool { return q.begins("- ") }

// block reads a mapping or a list in block style, that begins here on a line of its own. A list
// is packed, unless p is nil.
func (q *quickParser) block(depth int, p *packer) *yaml.Node {
	if depth > quickDepth || q.failed {
		return q.fail()
	}
	if q.atDash() {
		return q.blockList(depth, p)
	}
	return q.blockMapping(q.column, depth)
}

func (q *quickParser) blockList(depth int, p *packer) *yaml.Node {
	n, indent := q.node(yaml.SequenceNode, 0, "!!seq"), q.column
	for !q.failed && q.column == indent && q.atDash() {
		dash := q.offset
		q.skip()
		q.spaces()
		column := indent + q.offset - dash
		if p.consumeLines(q, column, indent) {
			continue
		}
		start := q.offset
		n.Content = append(n.Content, q.blockElement(column, depth))
		if q.column > indent { // the text goes on
			return q.fail()
		}
		p.add(q, n, column, span{start, q.end})
	}
	return p.finish(n)
}

// blockElement reads an element of a list, whose text ends with a line.
func (q *quickParser) blockElement(column, depth int) *yaml.Node {
	switch c := q.next(); {
	case c == '{' || c == '[':
		n := q.flow(depth+1, nil)
		q.endLine()
		return n
	case q.beginsMapping():
		return q.blockMapping(column, depth+1)
	}
	return q.blockScalar()
}

// beginsMapping reports whether there is a name and a colon here.
func (q *quickParser) beginsMapping() bool {
	offset := q.offset
	q.scalar(false)
	found := !q.failed && q.next() == ':'
	q.offset, q.failed = offset, false
	return found
}

// blockMapping reads a mapping whose names are in a column. The first is here.
func (q *quickParser) blockMapping(column, depth int) *yaml.Node {
	n := q.mapping(0)
	if depth > quickDepth {
		return q.fail()
	}
	for first := true; !q.failed && (first || q.column == column); first = false {
		key := q.name()
		if q.skip(); q.failed {
			break
		}
		q.spaces()
		var value *yaml.Node
		switch q.next() {
		case '\n':
			q.endLine()
			if q.column <= column && !(q.column == column && q.atDash()) { // it is null
				return q.fail()
			}
			value = q.block(depth+1, q.packerOf(key))
		case '{', '[':
			value = q.flow(depth+1, q.packerOf(key))
			q.endLine()
		default:
			value = q.blockScalar()
		}
		n.Content = append(n.Content, key, value)
		if q.column > column { // the text goes on
			return q.fail()
		}
	}
	return n
}

// name reads the name of a value, up to its colon, followed by a space or the end of the line.
func (q *quickParser) name() *yaml.Node {
	n := q.scalar(false)
	if len(n.Value) > quickName || !q.begins(": ") && !q.begins(":\n") {
		return q.fail()
	}
	return n
}

// blockScalar reads a word that is alone on the rest of its line.
func (q *quickParser) blockScalar() *yaml.Node {
	n := q.scalar(true)
	q.endLine()
	return n
}

// flow reads a value in a flow collection, or one. A list is packed, unless p is nil.
func (q *quickParser) flow(depth int, p *packer) *yaml.Node {
	if depth > quickDepth {
		return q.fail()
	}
	switch q.next() {
	case '{':
		return q.flowCollection(q.mapping(yaml.FlowStyle), '}', depth, nil)
	case '[':
		return p.finish(q.flowCollection(q.node(yaml.SequenceNode, yaml.FlowStyle, "!!seq"), ']', depth, p))
	}
	return q.scalar(true)
}

func (q *quickParser) flowCollection(n *yaml.Node, end byte, depth int, p *packer) *yaml.Node {
	q.skip()
	for q.gap(); !q.failed && q.next() != end; q.gap() {
		switch start := q.offset; {
		case n.Kind == yaml.MappingNode:
			key := q.name()
			q.skip()
			q.gap()
			n.Content = append(n.Content, key, q.flow(depth+1, q.packerOf(key)))
		case !p.consume(q, inFlow):
			n.Content = append(n.Content, q.flow(depth+1, nil))
			p.add(q, n, inFlow, span{start, q.offset})
		}
		q.gap()
		if q.next() == end {
			break
		}
		if !q.begins(", ") && !q.begins(",\n") {
			return q.fail()
		}
		q.skip()
	}
	q.skip()
	return n
}

// scalar reads a word or a quoted text. A kept one is copied: it must not hold the whole text in
// memory.
func (q *quickParser) scalar(kept bool) *yaml.Node {
	var s span
	n := q.node(yaml.ScalarNode, 0, "!!str")
	switch c := q.next(); c {
	case '"', '\'':
		n.Style = yaml.DoubleQuotedStyle
		if c == '\'' {
			n.Style = yaml.SingleQuotedStyle
		}
		start := q.offset + 1
		for q.skip(); q.next() >= ' ' && q.next() != c && q.next() != '\\'; q.skip() {
		}
		s = span{min(start, q.offset), q.offset}
		if q.next() != c {
			return q.fail()
		}
		if q.skip(); q.next() == c { // an escaped quote
			return q.fail()
		}
	default:
		start := q.offset
		for q.offset < len(q.text) && isWord(q.text[q.offset]) {
			q.skip()
		}
		s = span{start, q.offset}
		if n.Tag = wordTag(q.text[start:q.offset]); n.Tag == "" {
			return q.fail()
		}
	}
	n.Value = q.text[s.start:s.end]
	if kept {
		n.Value = strings.Clone(n.Value)
		q.values[0], q.values[1] = q.values[1], s
	}
	return n
}

// isWord reports whether a character has no other meaning within a word.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '/' || c == '-'
}

// wordTag returns the type of a plain word, empty if it is not certain.
func wordTag(word string) string {
	const longestNumber = 9
	if word == "" {
		return ""
	}
	first := word[0]
	switch {
	case first == '/':
		return "!!str"
	case first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z':
		switch {
		case word == "true" || word == "false":
			return "!!bool"
		case strings.EqualFold(word, "true") || strings.EqualFold(word, "false") || strings.EqualFold(word, "null"):
			return ""
		}
		return "!!str"
	case first < '0' || first > '9':
		return ""
	}
	digits, seconds := strings.CutSuffix(word, "s") // such as 0.25s
	whole, fraction, _ := strings.Cut(digits, ".")
	switch {
	case seconds && isDigits(whole) && isDigits(fraction):
		return "!!str"
	case strings.Count(word, ".") > 1 && isDigits(strings.ReplaceAll(word, ".", "")): // an IP address
		return "!!str"
	case isDigits(word) && len(word) <= longestNumber && (first != '0' || word == "0"):
		return "!!int"
	}
	return ""
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }
