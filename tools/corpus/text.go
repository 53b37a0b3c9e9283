package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// documents parses YAML or JSON. Text that is neither has none.
func documents(path string, data []byte) []*yaml.Node {
	if filepath.Ext(path) == ".json" {
		var compact bytes.Buffer // without tabs, which YAML does not take
		if json.Compact(&compact, data) == nil {
			data = compact.Bytes()
		}
	}
	var all []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		document := new(yaml.Node)
		if err := decoder.Decode(document); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			return nil
		}
		if len(document.Content) == 1 {
			all = append(all, plain(document.Content[0], 0))
		}
	}
}

// plain copies a node with what its aliases stand for in their place, so that
// any part can stand alone. Comments are left out.
func plain(n *yaml.Node, depth int) *yaml.Node {
	if depth > 100 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"} // an alias within itself
	}
	if n.Kind == yaml.AliasNode {
		return plain(n.Alias, depth+1)
	}
	copied := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for _, part := range n.Content {
		copied.Content = append(copied.Content, plain(part, depth+1))
	}
	return copied
}

// camel is the proto3 JSON name of a field.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// field gives that of a mapping, under either of its names, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if camel(n.Content[i].Value) == camel(name) {
			return n.Content[i+1]
		}
	}
	return nil
}

// text gives the text of a field, or "".
func text(n *yaml.Node, name string) string {
	if f := field(n, name); f != nil && f.Kind == yaml.ScalarNode {
		return f.Value
	}
	return ""
}

// untyped copies a mapping without its @type.
func untyped(n *yaml.Node) *yaml.Node {
	copied := *n
	copied.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "@type" {
			copied.Content = append(copied.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &copied
}

// typed copies a mapping with an @type.
func typed(n *yaml.Node, url string) *yaml.Node {
	copied := untyped(n)
	copied.Content = append([]*yaml.Node{word("@type"), quoted(url)}, copied.Content...)
	return copied
}

func word(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

func quoted(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
}

func list(parts ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: parts}
}

func mapping(name string, value *yaml.Node, more ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: append([]*yaml.Node{quoted(name), value}, more...)}
}

// walk visits a node, and what is in it unless visit says no.
func walk(n *yaml.Node, visit func(*yaml.Node) bool) {
	if n == nil || !visit(n) {
		return
	}
	for _, part := range n.Content {
		walk(part, visit)
	}
}
