package fields

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Walk calls visit with each field of an encoded message at any depth, until visit returns
// false. It leaves invalid input to the decoder. The depth is 0 for the message's own fields.
// descriptor is nil for a field that the message's type does not have.
func Walk(message protoreflect.MessageDescriptor, wire []byte, visit func(depth int, descriptor protoreflect.FieldDescriptor, f Field) bool) {
	walk(message, wire, 0, visit)
}

func walk(message protoreflect.MessageDescriptor, wire []byte, depth int, visit func(int, protoreflect.FieldDescriptor, Field) bool) bool {
	descriptors := message.Fields()
	for f := range All(wire) {
		field := descriptors.ByNumber(f.Number)
		if !visit(depth, field, *f) {
			return false
		}
		if field != nil && field.Message() != nil && f.Kind == protowire.BytesType && depth < protowire.DefaultRecursionLimit &&
			!walk(field.Message(), f.Value, depth+1, visit) {
			return false
		}
	}
	return true
}

// Count subtracts the fields of an encoded message at any depth from the number left. A negative
// result means that there were too many, and that it stopped counting. An empty field takes two
// bytes on the wire, and a hundred when it is decoded: so count before you decode.
func Count(left int, message protoreflect.MessageDescriptor, wire []byte) int {
	Walk(message, wire, func(int, protoreflect.FieldDescriptor, Field) bool {
		left--
		return left >= 0
	})
	return left
}

// Occurrences counts the messages at a path of fields. It leaves invalid input to the decoder.
func Occurrences(wire []byte, path ...protowire.Number) (n int) {
	for f := range All(wire) {
		switch {
		case !f.Is(path[0]):
		case len(path) == 1:
			n++
		default:
			n += Occurrences(f.Value, path[1:]...)
		}
	}
	return n
}
