package yamlpb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseJSON builds the nodes of the same document in YAML. A YAML parser would misread
// JSON's escapes and errors.
func parseJSON(data []byte) (*yaml.Node, int, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	r := &jsonReader{decoder: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	r.decoder.UseNumber()
	if !utf8.Valid(data) {
		return nil, 0, errors.New("is not valid JSON: some of it is not UTF-8")
	}
	root, err := r.value(0)
	if err == nil {
		if _, tokenErr := r.decoder.Token(); !errors.Is(tokenErr, io.EOF) {
			err = errors.New("something follows the end of the document")
		}
	}
	if err != nil {
		return nil, r.errorLine(err), fmt.Errorf("is not valid JSON: %s", jsonMessage(err))
	}
	return root, 0, nil
}

type jsonReader struct {
	decoder *json.Decoder
	data    []byte
	line    int
	counted int // bytes of data whose lines are in line
}

func (r *jsonReader) token() (json.Token, int, error) {
	token, err := r.decoder.Token()
	offset := int(r.decoder.InputOffset())
	r.line += bytes.Count(r.data[r.counted:offset], []byte{'\n'})
	r.counted = offset
	return token, r.line, err
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	token, line, err := r.token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	scalar := func(tag, value string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line}, nil
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: line}
		if token == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		return node, r.content(node, depth)
	case string:
		node, err := scalar("!!str", token)
		node.Style = yaml.DoubleQuotedStyle
		return node, err
	case json.Number:
		if strings.ContainsAny(token.String(), ".eE") {
			return scalar("!!float", token.String())
		}
		return scalar("!!int", token.String())
	case bool:
		return scalar("!!bool", fmt.Sprint(token))
	default:
		return scalar("!!null", "null")
	}
}

func (r *jsonReader) content(node *yaml.Node, depth int) error {
	for r.decoder.More() {
		child, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		node.Content = append(node.Content, child)
	}
	_, _, err := r.token() // the closing bracket
	return err
}

func (r *jsonReader) errorLine(err error) int {
	offset := len(r.data)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset = min(int(syntax.Offset), len(r.data))
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		offset = int(r.decoder.InputOffset())
	}
	return 1 + bytes.Count(r.data[:offset], []byte{'\n'})
}

func jsonMessage(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return err.Error()
}
