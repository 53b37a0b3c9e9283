package eds

import (
	"time"

	"hdsd/envoy/fields"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// form is the prefix of a frame's body for clients that do not get the frame unchanged.
type form struct {
	slot    *slot
	version uint64
	ttl     time.Duration
	located bool // by resource_name, with constraints
	wrapped bool // in an Any, for a state-of-the-world response
	body    int  // size of the body; 0: a heartbeat
}

// put adds a resource in the client's form, and returns its index in the response.
func (b *builder) put(w *watch, f *frame) (index int32) {
	u, r := b.sub, b.response
	switch {
	case u.beat.ttl > 0 || w.located:
		r.addFormed(form{
			slot: w.slot, version: u.beat.shown(f.version), ttl: u.beat.ttl, located: w.located, wrapped: !u.delta, body: f.state.Len(),
		}, f.state)
		r.count(w.key(), f.version)
	case u.delta:
		r.add(w.slot.name, f.version, f.delta)
	default:
		r.add(w.slot.name, f.version, f.state)
	}
	b.resources++
	return b.resources - 1
}

// pick adds a resource to the answer to a fetch.
func (r *response) pick(s *slot, located bool, f *frame) {
	if !located {
		r.add(s.name, f.version, f.state)
		return
	}
	r.addFormed(form{slot: s, version: f.version, located: true, wrapped: true, body: f.state.Len()}, f.state)
	r.count(s.key(true), f.version)
}

// addFormed adds a resource with a head of its own.
func (r *response) addFormed(f form, body mem.Buffer) {
	rare := r.rareParts()
	start := len(rare.heads)
	rare.heads = f.append(rare.heads)
	head := rare.heads[start:len(rare.heads):len(rare.heads)]
	r.parts = append(r.parts, mem.SliceBuffer(head))
	r.size += len(head)
	if f.body > 0 {
		r.parts = append(r.parts, body)
		r.size += f.body
	}
}

// append adds a resources entry up to its body, which comes last.
func (f *form) append(b []byte) []byte {
	var room [256]byte
	head := appendVersion(fields.AppendHead(room[:0], fields.ResourceVersion, versionDigits), f.version)
	if f.located {
		head = appendResourceName(head, fields.ResourceLocated, f.slot)
	} else {
		head = fields.AppendBytes(head, fields.ResourceName, f.slot.name)
	}
	if f.ttl > 0 {
		head = fields.AppendBytes(head, fields.ResourceTTL, fields.AppendDuration(nil, f.ttl))
	}
	size := len(head) + f.body
	if !f.wrapped {
		return append(fields.AppendHead(b, fields.ResponseResources, size), head...)
	}
	b = fields.AppendHead(b, fields.ResponseResources, protowire.SizeTag(fields.AnyTypeURL)+protowire.SizeBytes(len(fields.WrapperType))+
		protowire.SizeTag(fields.AnyValue)+protowire.SizeBytes(size))
	b = fields.AppendBytes(b, fields.AnyTypeURL, fields.WrapperType)
	return append(fields.AppendHead(b, fields.AnyValue, size), head...)
}

// miss adds an error for a name that does not exist, to a gRPC client.
func (b *builder) miss(w *watch) {
	if b.sub.gRPC && w.named {
		rare := b.response.rareParts()
		rare.missing = append(rare.missing, w.slot.name)
		b.response.size += 2*len(w.slot.name) + len(notThere)
	}
}

const notThere = "no source has this resource, or hdsd does not publish it"

// appendMissing adds a ResourceError with NOT_FOUND.
func appendMissing(b []byte, number protowire.Number, name string) []byte {
	const errorName, errorDetail, plainName, code, message, notFound = 1, 2, 1, 1, 2, 5
	named := fields.AppendBytes(nil, plainName, name)
	detail := fields.AppendNumber(nil, code, notFound)
	detail = fields.AppendBytes(detail, message, notThere)
	inner := fields.AppendBytes(nil, errorName, named)
	inner = fields.AppendBytes(inner, errorDetail, detail)
	return fields.AppendBytes(b, number, inner)
}
