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

// Bounds on what is read.
const (
	// MaxBytes is the largest file taken.
	MaxBytes = 64 << 20

	maxMarks    = 4_000_000 // characters that may begin a value
	maxDepth    = 100
	maxProblems = 1000
	aliasBudget = 1_000_000 // values of 64 bytes that aliases may add
)

// document is one parsed file; owned by one goroutine.
type document struct {
	file   string
	budget int // what decoding may still visit
}

// Parse reads a file's bytes: JSON where the name ends in .json, else YAML.
// Where that fails, it says why.
func Parse(file string, data []byte) (Node, []Problem) {
	doc := &document{file: file}
	node, line, err := parse(doc, data)
	if err != nil {
		return Node{}, []Problem{{File: file, Line: line, Message: err.Error()}}
	}
	return Node{doc: doc, yaml: node}, nil
}

func parse(doc *document, data []byte) (*yaml.Node, int, error) {
	if len(data) > MaxBytes {
		return nil, 0, fmt.Errorf("is larger than %d MiB: split it into several files of a folder", MaxBytes>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, 0, errors.New("is empty")
	}
	marks := 0
	for _, c := range data {
		switch c {
		case '{', '[', ',', ':', '-', '?', '\n':
			marks++
		}
	}
	if marks > maxMarks {
		return nil, 0, fmt.Errorf("holds too much for one text file (about %d values, at most %d): split it into several files of a folder", marks, maxMarks)
	}
	doc.budget = aliasBudget + 8*marks + len(data)/32
	if filepath.Ext(doc.file) == ".json" {
		return parseJSON(data)
	}
	return parseYAML(data)
}

func parseYAML(data []byte) (*yaml.Node, int, error) {
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

// yamlError takes the line out of the library's message and adds what helps.
func yamlError(err error) (int, error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if match := yamlErrorLine.FindStringSubmatch(message); match != nil {
		line, _ = strconv.Atoi(match[1])
		message = message[len(match[0]):]
	} else if !strings.Contains(message, "anchor") {
		line = 1 // which the library does not mention
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
