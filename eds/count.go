package eds

import (
	"bytes"
	"cmp"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/envoy/fields"
	"hdsd/internal/rest"
)

// counted is a request whose parts are counted before it is decoded: an empty name takes two
// bytes on the wire, a decoded locator dozens.
type counted struct {
	limiter     *limiter
	message     proto.Message
	decodeSmall func(encoded []byte) error // decodes a small request, which is not counted; nil: small ones are decoded as usual
	refusal     error                      // reason why it was not decoded; grpc would hide the error's code
}

// decode receives a request from grpc and counts its parts before it is decoded.
func (l *limiter) decode(receive func(any) error, m proto.Message) error {
	c := counted{limiter: l, message: m}
	return c.receive(receive, &c)
}

// receive receives into a message that decodes itself and whose parts are counted in c.
func (c *counted) receive(receive func(any) error, message any) error {
	if err := receive(message); err != nil {
		return err
	}
	return c.refusal
}

// fewBytes is the size up to which requests are not counted.
const fewBytes = 64 << 10

// UnmarshalWire implements wire.Unmarshaler. It decodes a large request piece by piece, with the
// same result, and without a copy beside grpc's.
func (c *counted) UnmarshalWire(data mem.BufferSlice) error {
	if data.Len() <= fewBytes {
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		if c.decodeSmall != nil {
			return c.decodeSmall(whole.ReadOnlyData())
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

// otherParts and otherBytes bound the other messages of a request together: a node has hundreds
// of extensions, however many names it requests.
const (
	otherParts = 64 << 10
	otherBytes = 32 << 20
)

// textBytes bounds a text in a JSON request.
const textBytes = 4 << 20

// parts bounds the fields of all locators in a request.
func (l limits) parts() int { return 8 * l.names }

// versions bounds the versions that a client may claim: one for each resource, and as many again
// for names that it may have requested or had, and that no longer exist.
func (l *limiter) versions(limits limits) int {
	return max(l.published.clusters.size(), l.published.assignments.size()) + 2*limits.names
}

// counter counts the parts of one request.
type counter struct {
	limits      limits
	versions    int // allowed number of versions
	descriptors protoreflect.FieldDescriptors
	field       protoreflect.FieldDescriptor // field of the previous part, and usually of the next
	lists       []listed                     // each list

	parts, others, otherBytes int // remaining
}

// listed counts the entries of one list so far.
type listed struct{ entries, bytes int }

func (l *limiter) counter(m proto.Message) *counter {
	descriptors, limits := m.ProtoReflect().Descriptor().Fields(), l.limits()
	return &counter{
		limits: limits, versions: l.versions(limits), descriptors: descriptors, lists: make([]listed, descriptors.Len()),
		parts: limits.parts(), others: otherParts, otherBytes: otherBytes,
	}
}

// count refuses a request with too many parts, or too long ones. It leaves invalid input
// to the decoder.
func (c *counter) count(piece []byte) error {
	for part := range fields.All(piece) {
		if c.field == nil || c.field.Number() != part.Number {
			c.field = c.descriptors.ByNumber(part.Number)
		}
		if c.field != nil && (c.field.IsList() || c.field.IsMap()) {
			if err := c.list(part); err != nil {
				return err
			}
		} else if err := c.countOther(part); err != nil {
			return err
		}
	}
	return nil
}

// list counts an entry of a list.
func (c *counter) list(part *fields.Field) error {
	n := &c.lists[c.field.Index()]
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
	if c.parts = countParts(c.parts, c.field, part.Value); c.parts < 0 {
		return rest.TooLarge("the locators of a request may have up to %d fields together: "+raised, c.limits.parts())
	}
	return nil
}

// countOther counts a part outside lists.
func (c *counter) countOther(part *fields.Field) error {
	c.others, c.otherBytes = countParts(c.others, c.field, part.Value), c.otherBytes-len(part.Raw)
	switch {
	case c.others < 0:
		return rest.TooLarge("the node and the error of a request may have up to %d fields together: make the node smaller", otherParts)
	case c.otherBytes < 0:
		return rest.TooLarge("the node and the error of a request may have up to %d bytes together: make the node smaller", otherBytes)
	}
	return nil
}

// countParts subtracts the fields of a message from the remaining number. A negative result
// means that there were too many.
func countParts(left int, field protoreflect.FieldDescriptor, encoded []byte) int {
	if field == nil || field.Message() == nil {
		return left
	}
	return fields.Count(left, field.Message(), encoded)
}

// countText refuses a JSON request with too many parts, or too long a text, before it is
// decoded. It counts commas, because one stands between any two parts.
func (l *limiter) countText(body []byte) error {
	if limit := l.limits().parts() + otherParts; bytes.Count(body, comma) > limit {
		return rest.TooLarge("a request may have up to %d fields: "+raised, limit)
	}
	for len(body) > textBytes { // the rest cannot have a longer text
		quote := bytes.IndexByte(body[:textBytes], '"')
		if quote < 0 {
			return rest.TooLarge("a text of a request may have up to %d bytes: use shorter names, or make the node smaller", textBytes)
		}
		body = body[quote+1:]
	}
	return nil
}
