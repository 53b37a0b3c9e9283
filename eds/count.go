package eds

import (
	"bytes"
	"cmp"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/internal/fields"
	"hdsd/internal/rest"
)

// counted is a request whose parts are counted before it is decoded: an empty name
// takes two bytes on the wire, a decoded locator dozens.
type counted struct {
	limiter *limiter
	message proto.Message
	few     func(encoded []byte) error // decodes a request that is not counted; nil: there is nothing special about it
	refusal error                      // why it was not decoded; grpc would hide the error's code
}

// decode receives a request from grpc and counts its parts before it is decoded.
func (l *limiter) decode(receive func(any) error, m proto.Message) error {
	c := counted{limiter: l, message: m}
	return c.receive(receive, &c)
}

// receive receives into a message that decodes itself and whose parts are counted in c.
func (c *counted) receive(receive func(any) error, into any) error {
	if err := receive(into); err != nil {
		return err
	}
	return c.refusal
}

// fewBytes is the size up to which a request is not counted.
const fewBytes = 64 << 10

// UnmarshalWire implements wire.Unmarshaler. It decodes a large request piece by piece,
// which gives the same message as the whole: so it needs no copy of it beside that of
// grpc.
func (c *counted) UnmarshalWire(data mem.BufferSlice) error {
	if data.Len() <= fewBytes {
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		if c.few != nil {
			return c.few(whole.ReadOnlyData())
		}
		return proto.Unmarshal(whole.ReadOnlyData(), c.message)
	}
	n := c.limiter.counter(c.message)
	if c.refusal = eachPiece(data, n.count); c.refusal != nil {
		return nil
	}
	// Nothing here reads unknown fields.
	options := proto.UnmarshalOptions{Merge: true, DiscardUnknown: true}
	return eachPiece(data, func(piece []byte) error { return options.Unmarshal(piece, c.message) })
}

// otherParts and otherBytes are what the other messages of a request may have together: a
// node has hundreds of extensions, however many names it asks for.
const (
	otherParts = 64 << 10
	otherBytes = 32 << 20
)

// textBytes is what a text may have in a request in JSON.
const textBytes = 4 << 20

// parts returns how many fields the locators of a request may have together.
func (l limits) parts() int { return 8 * l.names }

// versions returns how many versions a client may say it has: one for each resource,
// and as many again as it may have named, or may have from before, that are gone.
func (l *limiter) versions(limits limits) int {
	return max(l.published.clusters.size(), l.published.assignments.size()) + 2*limits.names
}

// counter counts the parts of one request.
type counter struct {
	limits   limits
	versions int // that it may list
	known    protoreflect.FieldDescriptors
	field    protoreflect.FieldDescriptor // of the previous part, and mostly of the next
	of       []listed                     // each list

	parts, others, otherBytes int // that are left
}

// listed is what one list of a request has so far.
type listed struct{ entries, bytes int }

func (l *limiter) counter(m proto.Message) *counter {
	known, limits := m.ProtoReflect().Descriptor().Fields(), l.limits()
	return &counter{
		limits: limits, versions: l.versions(limits), known: known, of: make([]listed, known.Len()),
		parts: limits.parts(), others: otherParts, otherBytes: otherBytes,
	}
}

// count refuses a request with too many parts, or too long ones. It leaves invalid input
// to the decoder.
func (c *counter) count(piece []byte) error {
	for len(piece) > 0 {
		part, err := fields.Next(piece)
		if err != nil {
			return nil
		}
		piece = piece[len(part.Raw):]
		if c.field == nil || c.field.Number() != part.Number {
			c.field = c.known.ByNumber(part.Number)
		}
		if c.field != nil && (c.field.IsList() || c.field.IsMap()) {
			err = c.list(part)
		} else {
			err = c.other(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list counts an entry of a list.
func (c *counter) list(part fields.Field) error {
	n := &c.of[c.field.Index()]
	n.entries++
	switch {
	case c.field.IsMap():
		if n.entries > c.versions {
			return rest.TooLarge("a client may list up to %d resources that it has: "+raised, c.versions)
		}
		return nil
	case n.entries > c.limits.names+1: // "*" beside the names
		return c.limits.check(n.entries, 0)
	case c.field.Message() == nil:
		n.bytes += len(part.Value)
		return cmp.Or(checkName(len(part.Value)), c.limits.check(0, n.bytes))
	}
	if c.parts = countParts(c.parts, c.field, part.Value, 0); c.parts < 0 {
		return rest.TooLarge("the locators of a request may have up to %d fields together: "+raised, c.limits.parts())
	}
	return nil
}

// other counts what is not in a list.
func (c *counter) other(part fields.Field) error {
	c.others, c.otherBytes = countParts(c.others, c.field, part.Value, 0), c.otherBytes-len(part.Raw)
	switch {
	case c.others < 0:
		return rest.TooLarge("the node and the error of a request may have up to %d fields together: make the node smaller", otherParts)
	case c.otherBytes < 0:
		return rest.TooLarge("the node and the error of a request may have up to %d bytes together: make the node smaller", otherBytes)
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
		part, err := fields.Next(encoded)
		if err != nil {
			return left
		}
		encoded = encoded[len(part.Raw):]
		left = countParts(left-1, known.ByNumber(part.Number), part.Value, depth+1)
	}
	return left
}

// countText refuses a JSON request with too many parts, or with too long a text, before it
// is decoded. It counts commas, because one stands between any two parts.
func (l *limiter) countText(body []byte) error {
	if most := l.limits().parts() + otherParts; bytes.Count(body, comma) > most {
		return rest.TooLarge("a request may have up to %d fields: "+raised, most)
	}
	for len(body) > textBytes { // what is left may have no longer text
		next := bytes.IndexByte(body[:textBytes], '"')
		if next < 0 {
			return rest.TooLarge("a text of a request may have up to %d bytes: use shorter names, or make the node smaller", textBytes)
		}
		body = body[next+1:]
	}
	return nil
}
