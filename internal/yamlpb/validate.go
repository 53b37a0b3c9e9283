package yamlpb

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Violation is a value that breaks a rule of its message.
type Violation struct {
	Field  string // path in proto names
	Reason string // the fault, and how to fix it
}

// Validate applies the validation rules of Envoy's messages (protoc-gen-validate), and returns
// the first thousand violations. It does not look into an Any.
func Validate(m proto.Message) []Violation {
	return ValidateExcept(m, func(string) bool { return false })
}

// ValidateExcept is Validate without the fields for which except returns true, and their
// content. They do not count.
func ValidateExcept(m proto.Message, except func(field string) bool) []Violation {
	validator, ok := m.(interface{ ValidateAll() error })
	if !ok {
		return nil
	}
	v := &violations{except: except}
	v.add(validator.ValidateAll(), "", m.ProtoReflect().Descriptor(), 0)
	return v.list
}

// violations collects violations. A message has as many as it has parts, and describing one
// takes far longer than decoding it.
type violations struct {
	except func(field string) bool
	list   []Violation
}

type violation interface {
	Field() string
	Reason() string
	Cause() error
}

func (v *violations) add(err error, location string, m protoreflect.MessageDescriptor, depth int) {
	switch e := err.(type) { //nolint:errorlint // the loop walks the wrapped errors
	case nil:
	case interface{ AllErrors() []error }:
		for _, inner := range e.AllErrors() {
			if len(v.list) == maxProblems {
				return
			}
			v.add(inner, location, m, depth)
		}
	case violation:
		v.field(e, location, m, depth)
	default:
		v.list = append(v.list, Violation{location, err.Error()})
	}
}

func (v *violations) field(e violation, location string, m protoreflect.MessageDescriptor, depth int) {
	name, nested := protoName(e.Field(), m)
	if location != "" {
		name = location + "." + name
	}
	oneof := oneofOf(e.Field(), m)
	switch {
	case v.except(name):
	case oneof != nil && e.Cause() == nil:
		v.list = append(v.list, Violation{name, noneOf(oneof)})
	case e.Cause() == nil || depth > maxDepth:
		v.list = append(v.list, Violation{name, explain(e.Reason())})
	default:
		v.add(e.Cause(), name, nested, depth+1)
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
