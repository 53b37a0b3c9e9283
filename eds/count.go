package eds

import (
	"bytes"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/internal/rest"
)

// counted is a request to be received. What is in it is counted before it is
// decoded: an empty name takes two bytes on the wire, a decoded locator dozens.
type counted struct {
	limiter *limiter
	message proto.Message
	refusal error // why it was not decoded; grpc would hide the code of an error
}

// decode has grpc receive a request, which is counted before.
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

// fewBytes is the size of a request that is not worth counting.
const fewBytes = 64 << 10

// parts is how many fields the locators in a request may have together.
func (l limits) parts() int { return 8 * l.names }

// otherParts is how many the other messages in a request may have together: a
// node has hundreds of extensions, however many names there are.
const otherParts = 64 << 10

// versions is how many versions a client may say it has: of what there is, and
// of as much as it may have named, or brings, that is not there.
func (l *limiter) versions(limits limits) int {
	return max(l.published.clusters.size(), l.published.assignments.size()) + 2*limits.names
}

// count refuses an encoded request with too much in it. What is no message is
// left to the decoder.
func (l *limiter) count(encoded []byte, m proto.Message) error {
	known := m.ProtoReflect().Descriptor().Fields()
	of := make([]int, known.Len()) // the parts of each list
	limits := l.limits()
	parts, others, versions := limits.parts(), otherParts, l.versions(limits)
	var field protoreflect.FieldDescriptor // of the part before; mostly of the next, too
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
			return rest.TooLarge("a client may say that it has up to %d resources: "+raised, versions)
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

// countParts takes the fields of a message from those that are left. None is
// left where it gives less than 0.
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

// countText refuses a request in JSON with too much in it, before it is decoded:
// between two of anything is a comma.
func (l *limiter) countText(body []byte) error {
	if most := l.limits().parts() + otherParts; bytes.Count(body, comma) > most {
		return rest.TooLarge("a request may have up to %d fields: "+raised, most)
	}
	return nil
}
