package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// CountFields subtracts the fields that an encoded message has at any depth from the
// number left. A negative result means that there were too many, and that it stopped
// counting. It leaves invalid input to the decoder. An empty field takes two bytes on
// the wire, and a hundred when it is decoded: so count before you decode.
func CountFields(left int, of protoreflect.MessageDescriptor, encoded []byte) int {
	return countFields(left, of, encoded, 0)
}

func countFields(left int, of protoreflect.MessageDescriptor, encoded []byte, depth int) int {
	if depth > protowire.DefaultRecursionLimit {
		return left
	}
	known := of.Fields()
	for len(encoded) > 0 && left >= 0 {
		number, kind, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return left
		}
		size := protowire.ConsumeFieldValue(number, kind, encoded[n:])
		if size < 0 {
			return left
		}
		left--
		if field := known.ByNumber(number); field != nil && field.Message() != nil && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(encoded[n:])
			left = countFields(left, field.Message(), value, depth+1)
		}
		encoded = encoded[n+size:]
	}
	return left
}
