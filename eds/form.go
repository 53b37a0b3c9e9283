package eds

import (
	"time"

	"hdsd/internal/fields"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

const wrapperType = "type.googleapis.com/envoy.service.discovery.v3.Resource"

// form is what goes before a frame's body where a client does not get the frame
// unchanged.
type form struct {
	slot    *slot
	version uint64
	ttl     time.Duration
	located bool // by resource_name, with constraints
	wrapped bool // in an Any, for a state-of-the-world response
	body    int  // the size of what follows; 0: a heartbeat
}

// put adds a resource in the form that the client takes, and returns its index in the response.
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
	more := r.more()
	start := len(more.heads)
	more.heads = f.append(more.heads)
	head := more.heads[start:len(more.heads):len(more.heads)]
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
	head := appendVersion(fields.AppendHead(room[:0], resourceVersion, versionDigits), f.version)
	if f.located {
		head = appendResourceName(head, resourceLocated, f.slot)
	} else {
		head = appendText(head, resourceName, f.slot.name)
	}
	if f.ttl > 0 {
		head = appendDuration(head, resourceTTL, f.ttl)
	}
	size := len(head) + f.body
	if !f.wrapped {
		return append(fields.AppendHead(b, responseResources, size), head...)
	}
	b = fields.AppendHead(b, responseResources, protowire.SizeTag(anyTypeURL)+protowire.SizeBytes(len(wrapperType))+
		protowire.SizeTag(anyValue)+protowire.SizeBytes(size))
	b = appendText(b, anyTypeURL, wrapperType)
	return append(fields.AppendHead(b, anyValue, size), head...)
}

func appendDuration(b []byte, number protowire.Number, d time.Duration) []byte {
	var room [24]byte
	value := protowire.AppendVarint(protowire.AppendTag(room[:0], 1, protowire.VarintType), uint64(d/time.Second))
	if nanos := d % time.Second; nanos > 0 {
		value = protowire.AppendVarint(protowire.AppendTag(value, 2, protowire.VarintType), uint64(nanos))
	}
	return fields.AppendBytes(b, number, value)
}

// miss adds an error for a name that does not exist, to a gRPC client.
func (b *builder) miss(w *watch) {
	if b.sub.gRPC && w.named {
		more := b.response.more()
		more.missing = append(more.missing, w.slot.name)
		b.response.size += 2*len(w.slot.name) + len(notThere)
	}
}

const notThere = "no source has this resource, or hdsd does not publish it"

// appendMissing adds a ResourceError with NOT_FOUND.
func appendMissing(b []byte, number protowire.Number, name string) []byte {
	const errorName, errorDetail, plainName, code, message, notFound = 1, 2, 1, 1, 2, 5
	named := appendText(nil, plainName, name)
	detail := protowire.AppendVarint(protowire.AppendTag(nil, code, protowire.VarintType), notFound)
	detail = appendText(detail, message, notThere)
	inner := fields.AppendBytes(nil, errorName, named)
	inner = fields.AppendBytes(inner, errorDetail, detail)
	return fields.AppendBytes(b, number, inner)
}
