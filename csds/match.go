package csds

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy/fields"
)

// The limits of the matchers of one request.
const (
	maxMatchers      = 1024 // node, string and value matchers together
	maxMatcherDepth  = 16   // of nested value matchers
	maxMatcherPath   = 64   // segments
	maxRegexBytes    = 1024
	maxRegexProgram  = 1000 // instructions of one expression
	maxRegexPrograms = 4000 // of all of them
)

// compiler compiles the matchers of one request, and bounds their cost.
type compiler struct {
	matchers int
	programs int // instructions
}

// count returns an error above the limit of matchers.
func (c *compiler) count() error {
	if c.matchers++; c.matchers > maxMatchers {
		return fmt.Errorf(": a request may have up to %d matchers", maxMatchers)
	}
	return nil
}

// nodes selects the nodes that any of its matchers selects; without matchers, all nodes.
type nodes []func(*corev3.Node) bool

func (ns nodes) matches(n *corev3.Node) bool {
	for _, match := range ns {
		if match(n) {
			return true
		}
	}
	return len(ns) == 0
}

// compile compiles the matchers of a request. An error names the field.
func compile(matchers []*matcherv3.NodeMatcher) (nodes, error) {
	c := &compiler{}
	selected := make(nodes, 0, min(len(matchers), maxMatchers))
	for i, m := range matchers {
		match, err := c.node(m)
		if err == nil {
			err = checkKnown(m.ProtoReflect())
		}
		if err != nil {
			return nil, fmt.Errorf("node_matchers[%d]%w", i, err)
		}
		selected = append(selected, match)
	}
	return selected, nil
}

// checkKnown returns an error if a matcher has an unknown field, at any depth. Ignoring it could
// select more nodes than requested.
func checkKnown(m protoreflect.Message) error {
	return protorange.Range(m, func(values protopath.Values) error {
		inner, ok := values.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok || len(inner.GetUnknown()) == 0 {
			return nil
		}
		unknown, _ := fields.Next(inner.GetUnknown()) // it was decoded
		return fmt.Errorf(": %s has a field %d, which hdsd does not know; leave it out", inner.Descriptor().FullName(), unknown.Number)
	})
}

func (c *compiler) node(m *matcherv3.NodeMatcher) (func(*corev3.Node) bool, error) {
	if err := c.count(); err != nil {
		return nil, err
	}
	id := func(string) bool { return true }
	if m.GetNodeId() != nil {
		var err error
		if id, err = c.text(m.GetNodeId()); err != nil {
			return nil, fmt.Errorf(".node_id%w", err)
		}
	}
	metadata := make([]func(*structpb.Struct) bool, 0, len(m.GetNodeMetadatas()))
	for i, s := range m.GetNodeMetadatas() {
		match, err := c.structure(s)
		if err != nil {
			return nil, fmt.Errorf(".node_metadatas[%d]%w", i, err)
		}
		metadata = append(metadata, match)
	}
	return func(n *corev3.Node) bool {
		if !id(n.GetId()) {
			return false
		}
		for _, match := range metadata {
			if !match(n.GetMetadata()) {
				return false
			}
		}
		return true
	}, nil
}

func (c *compiler) structure(m *matcherv3.StructMatcher) (func(*structpb.Struct) bool, error) {
	path := make([]string, 0, min(len(m.GetPath()), maxMatcherPath))
	for i, segment := range m.GetPath() {
		if segment.GetKey() == "" {
			return nil, fmt.Errorf(".path[%d]: needs a key", i)
		}
		path = append(path, segment.GetKey())
	}
	switch {
	case len(path) == 0:
		return nil, errors.New(".path: needs a segment")
	case len(path) > maxMatcherPath:
		return nil, fmt.Errorf(".path: may have up to %d segments", maxMatcherPath)
	case m.GetValue() == nil:
		return nil, errors.New(".value: is missing")
	}
	match, err := c.value(m.GetValue(), 1)
	if err != nil {
		return nil, fmt.Errorf(".value%w", err)
	}
	return func(s *structpb.Struct) bool { return match(lookup(s, path)) }, nil
}

// lookup returns the value at a path, or nil.
func lookup(s *structpb.Struct, path []string) *structpb.Value {
	var v *structpb.Value
	for _, key := range path {
		v = s.GetFields()[key]
		s = v.GetStructValue()
	}
	return v
}
