package yamlpb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a document.
const (
	// MaxBytes is the size limit of a file.
	MaxBytes = 64 << 20

	maxMarks    = 4_000_000 // characters that may begin a value
	maxDepth    = 100
	maxProblems = 1000
	aliasBudget = 1_000_000 // values of 64 bytes that aliases may add
)

// document is one parsed file. One goroutine owns it.
type document struct {
	file     string
	envoy    bool // as lenient as Envoy
	own      bool // durations in people's form
	budget   int  // remaining budget of decoding
	warnings []Problem
}

func (d *document) warn(line int, field, message string) {
	if len(d.warnings) < maxProblems {
		d.warnings = append(d.warnings, Problem{File: d.file, Line: line, Field: field, Message: message, Warning: true})
	}
}

// Parse parses a file's bytes: JSON if the name ends in .json, else YAML. On failure it returns
// the reason.
func Parse(file string, data []byte) (Node, []Problem) {
	return read(&document{file: file}, data)
}

// ParseOwn is Parse for files that only hdsd reads. Decoding also accepts durations such
// as 30d and 1h30m.
func ParseOwn(file string, data []byte) (Node, []Problem) {
	return read(&document{file: file, own: true}, data)
}

// ParseAsEnvoy parses the bytes of a file that Envoy reads too. Decoding then accepts every
// spelling that Envoy accepts. On failure it returns the reason; else its problems are warnings.
func ParseAsEnvoy(file string, data []byte) (Node, []Problem) {
	return read(&document{file: file, envoy: true}, data)
}

func read(doc *document, data []byte) (Node, []Problem) {
	node, line, err := parse(doc, data)
	if err != nil {
		return Node{}, []Problem{{File: doc.file, Line: line, Message: err.Error()}}
	}
	if doc.envoy && !doc.json() {
		convertForEnvoy(doc, node)
	}
	return Node{doc: doc, yaml: node}, doc.warnings
}

func (d *document) json() bool { return filepath.Ext(d.file) == ".json" }

func parse(doc *document, data []byte) (*yaml.Node, int, error) {
	marks, err := measure(data)
	if err != nil {
		return nil, 0, err
	}
	doc.allow(marks, len(data))
	if doc.json() {
		return parseJSON(data)
	}
	return parseYAML(doc, data)
}

// measure counts the characters that may begin a value. It returns an error if a file is empty
// or has too much.
func measure(data []byte) (marks int, err error) {
	if len(data) > MaxBytes {
		return 0, fmt.Errorf("is larger than %d MiB: split it into several files of a folder", MaxBytes>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return 0, errors.New("is empty")
	}
	for _, c := range data {
		marks += begins[c]
	}
	if marks > maxMarks {
		return 0, fmt.Errorf("holds too much for one text file (about %d values, at most %d): split it into several files of a folder", marks, maxMarks)
	}
	return marks, nil
}

// begins has 1 for the characters that may begin a value.
var begins = [256]int{'{': 1, '[': 1, ',': 1, ':': 1, '-': 1, '?': 1, '\n': 1}

// allow sets the decoding budget of a text with so many marks and bytes.
func (d *document) allow(marks, bytes int) { d.budget = aliasBudget + 8*marks + bytes/32 }

func parseYAML(doc *document, data []byte) (*yaml.Node, int, error) {
	if bytes.HasPrefix(data, []byte("%YAML 1.")) { // the library accepts the name 1.1 only
		data = append([]byte("#"), data[1:]...)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, 0, errors.New("is empty")
		}
		line, err := yamlError(err)
		return nil, line, err
	}
	switch err := decoder.Decode(&second); {
	case doc.envoy && !errors.Is(err, io.EOF):
		if err != nil || !isNull(second.Content[0]) {
			doc.warn(second.Line, "", "a second document begins here, which Envoy does not read, and neither does hdsd: put it into a file of its own")
		}
	case err == nil:
		return nil, second.Line, errors.New("a second document begins here: put it into a file of its own")
	case !errors.Is(err, io.EOF):
		line, err := yamlError(err)
		return nil, line, err
	}
	root := first.Content[0]
	if isNull(root) {
		return nil, 0, errors.New("is empty")
	}
	return root, 0, nil
}

var yamlErrorLine = regexp.MustCompile(`^line (\d+): `)

// yamlError separates the line from the library's message, and adds advice.
func yamlError(err error) (int, error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if match := yamlErrorLine.FindStringSubmatch(message); match != nil {
		line, _ = strconv.Atoi(match[1])
		message = message[len(match[0]):]
	} else if !strings.Contains(message, "anchor") {
		line = 1 // the library does not mention it
	}
	switch {
	case strings.Contains(message, "cannot start any token"):
		message += " (a tab? indent with spaces; quote texts that begin with a special character)"
	case strings.Contains(message, "mapping values are not allowed"):
		message += " (check the indentation, and quote texts that hold a colon and a space)"
	}
	return line, errors.New("is not valid YAML: " + message)
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}
