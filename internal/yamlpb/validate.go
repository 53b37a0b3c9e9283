package yamlpb

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Violation is a value that breaks a rule of its message.
type Violation struct {
	Field  string // path in proto names
	Reason string // what is wrong, and how to fix it
}

// Validate applies the validation rules of Envoy's messages (protoc-gen-validate), and
// returns the violations. It does not look into an Any.
func Validate(m proto.Message) []Violation {
	validator, ok := m.(interface{ ValidateAll() error })
	if !ok {
		return nil
	}
	return violations(validator.ValidateAll(), "", m.ProtoReflect().Descriptor(), 0)
}

type violation interface {
	Field() string
	Reason() string
	Cause() error
}

func violations(err error, at string, m protoreflect.MessageDescriptor, depth int) []Violation {
	switch e := err.(type) { //nolint:errorlint // the loop walks the wrapped errors
	case nil:
		return nil
	case interface{ AllErrors() []error }:
		var all []Violation
		for _, one := range e.AllErrors() {
			all = append(all, violations(one, at, m, depth)...)
		}
		return all
	case violation:
		name, below := protoName(e.Field(), m)
		if at != "" {
			name = at + "." + name
		}
		if oneof := oneofOf(e.Field(), m); oneof != nil && e.Cause() == nil {
			return []Violation{{name, noneOf(oneof)}}
		}
		if e.Cause() == nil || depth > maxDepth {
			return []Violation{{name, explain(e.Reason())}}
		}
		return violations(e.Cause(), name, below, depth+1)
	default:
		return []Violation{{at, err.Error()}}
	}
}

// protoName converts the name of a Go field, with its index, to the proto's.
func protoName(name string, m protoreflect.MessageDescriptor) (string, protoreflect.MessageDescriptor) {
	name, index, indexed := strings.Cut(name, "[")
	if indexed {
		index = "[" + index
	}
	if m == nil {
		return name + index, nil
	}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if !sameName(field.TextName(), name) {
			continue
		}
		if field.IsMap() {
			return field.TextName() + index, field.MapValue().Message()
		}
		return field.TextName() + index, field.Message()
	}
	if oneof := oneofOf(name, m); oneof != nil {
		return string(oneof.Name()) + index, nil
	}
	return name + index, nil
}

// oneofOf returns the oneof of a Go field, nil if it has none.
func oneofOf(name string, m protoreflect.MessageDescriptor) protoreflect.OneofDescriptor {
	if m == nil {
		return nil
	}
	for i := range m.Oneofs().Len() {
		if oneof := m.Oneofs().Get(i); !oneof.IsSynthetic() && sameName(string(oneof.Name()), name) {
			return oneof
		}
	}
	return nil
}
