package eds

import (
	"bytes"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/internal/rest"
)

// counted is a request whose parts are counted before it is decoded: an empty name
// takes two bytes on the wire, a decoded locator dozens.
type counted struct {
	limiter *limiter
	message proto.Message
	refusal error // why it was not decoded; grpc would hide the error's code
}

// decode receives a request from grpc and counts its parts before it is decoded.
func (l *limiter) decode(receive func(any) error, m proto.Message) error {
	c := counted{limiter: l, message: m}
	if err := receive(&c); err != nil {
		return err
	}
	return c.refusal
}

// UnmarshalWire implements wire.Unmarshaler.
func (c *counted) UnmarshalWire(data mem.BufferSlice) error {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	if whole.Len() > fewBytes {
		if c.refusal = c.limiter.count(whole.ReadOnlyData(), c.message); c.refusal != nil {
			return nil
		}
	}
	return proto.Unmarshal(whole.ReadOnlyData(), c.message)
}

// fewBytes is the size up to which a request is not counted.
const fewBytes = 64 << 10

// parts returns how many fields the locators of a request may have together.
func (l limits) parts() int { return 8 * l.names }

// otherParts is how many fields the other messages of a request may have together: a
// node has hundreds of extensions, however many names it asks for.
const otherParts = 64 << 10

// versions returns how many versions a client may say it has: one for each resource,
// and as many again as it may have named, or may have from before, that are gone.
func (l *limiter) versions(limits limits) int {
	return max(l.published.clusters.size(), l.published.assignments.size()) + 2*limits.names
}

// count refuses an encoded request with too many parts. It leaves invalid input to the
// decoder.
func (l *limiter) count(encoded []byte, m proto.Message) error {
	known := m.ProtoReflect().Descriptor().Fields()
	of := make([]int, known.Len()) // the entries of each list
	limits := l.limits()
	parts, others, versions := limits.parts(), otherParts, l.versions(limits)
	var field protoreflect.FieldDescriptor // of the previous part, and mostly of the next
	for len(encoded) > 0 && parts >= 0 && others >= 0 {
		part, err := nextField(encoded)
		if err != nil {
			return nil
		}
		encoded = encoded[len(part.raw):]
		if field == nil || field.Number() != part.number {
			field = known.ByNumber(part.number)
		}
		if field == nil || !field.IsList() && !field.IsMap() {
			others = countParts(others, field, part.value, 0)
			continue
		}
		n := &of[field.Index()]
		*n++
		switch {
		case !field.IsMap() && *n > limits.names+1: // "*" beside the names
			return limits.check(*n, 0)
		case !field.IsMap():
			parts = countParts(parts, field, part.value, 0)
		case *n > versions:
			return rest.TooLarge("a client may list up to %d resources that it has: "+raised, versions)
		}
	}
	switch {
	case parts < 0:
		return rest.TooLarge("the locators of a request may have up to %d fields together: "+raised, limits.parts())
	case others < 0:
		return rest.TooLarge("the node and the error of a request may have up to %d fields together: make the node smaller", otherParts)
	}
	return nil
}

// countParts subtracts the fields of a message from the number left. A negative result
// means that there were too many.
func countParts(left int, field protoreflect.FieldDescriptor, encoded []byte, depth int) int {
	if field == nil || field.Message() == nil || depth > protowire.DefaultRecursionLimit {
		return left
	}
	known := field.Message().Fields()
	for len(encoded) > 0 && left >= 0 {
		part, err := nextField(encoded)
		if err != nil {
			return left
		}
		encoded = encoded[len(part.raw):]
		left = countParts(left-1, known.ByNumber(part.number), part.value, depth+1)
	}
	return left
}

// countText refuses a JSON request with too many parts before it is decoded. It counts
// commas, because one stands between any two parts.
func (l *limiter) countText(body []byte) error {
	if most := l.limits().parts() + otherParts; bytes.Count(body, comma) > most {
		return rest.TooLarge("a request may have up to %d fields: "+raised, most)
	}
	return nil
}
