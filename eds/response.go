package eds

import (
	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
)

// response is a message of shared frames and its own tail.
type response struct {
	parts  mem.BufferSlice
	size   int
	rare   *rare         // nil in most responses
	digest xxhash.Digest // of names and versions
	oldest int64         // time of the oldest change in it, by publication.now; 0: none

	// Room for the parts of most responses: one resource, and the tail.
	partsRoom [2]mem.Buffer
	sentRoom  [1]sending
	tailRoom  [128]byte
}

// rare is the part that few responses have.
type rare struct {
	removed []*watch // for removed_resources or removed_resource_names
	missing []string // names for resource_errors
	heads   []byte   // of resources in a form that most clients do not get
}

func (r *response) rareParts() *rare {
	if r.rare == nil {
		r.rare = new(rare)
	}
	return r.rare
}

func (r *rare) append(b []byte, errors protowire.Number) []byte {
	for _, w := range r.removed {
		if w.located {
			b = appendResourceName(b, fields.DeltaResponseRemovedLocated, w.slot)
		} else {
			b = fields.AppendBytes(b, fields.DeltaResponseRemoved, w.slot.name)
		}
	}
	for _, name := range r.missing {
		b = appendMissing(b, errors, name)
	}
	return b
}

// MarshalWire implements wire.Marshaler.
func (r *response) MarshalWire() (mem.BufferSlice, error) { return r.parts, nil }

func newResponse() *response {
	r := new(response)
	r.digest.Reset()
	r.parts = r.partsRoom[:0]
	return r
}

func (r *response) add(name string, version uint64, part mem.Buffer) {
	r.parts = append(r.parts, part)
	r.size += part.Len()
	r.count(name, version)
}

func (r *response) remove(w *watch) {
	rare := r.rareParts()
	rare.removed = append(rare.removed, w)
	key := w.key()
	r.size += protowire.SizeTag(fields.DeltaResponseRemoved) + protowire.SizeBytes(len(key))
	r.count(key, 0)
}

func (r *response) count(name string, version uint64) { countResource(&r.digest, name, version) }

func countResource(digest *xxhash.Digest, name string, version uint64) {
	var text [versionDigits]byte
	putVersion(text[:], version)
	digest.WriteString(name)
	digest.Write(text[:])
}

func (r *response) empty() bool {
	return len(r.parts) == 0 && (r.rare == nil || len(r.rare.removed) == 0 && len(r.rare.missing) == 0)
}

// finish adds the client's own part.
func (r *response) finish(typeURL string, delta bool, nonce, identifier string) {
	controlPlane, errors := protowire.Number(fields.StateResponseControlPlane), protowire.Number(fields.StateResponseErrors)
	if delta {
		controlPlane, errors = fields.DeltaResponseControlPlane, fields.DeltaResponseErrors
	}
	tail := fields.AppendHead(r.tailRoom[:0], fields.ResponseVersion, versionDigits)
	tail = appendVersion(tail, r.digest.Sum64())
	tail = fields.AppendBytes(tail, fields.ResponseTypeURL, typeURL)
	tail = fields.AppendBytes(tail, fields.ResponseNonce, nonce)
	if r.rare != nil {
		tail = r.rare.append(tail, errors)
	}
	if identifier != "" {
		size := protowire.SizeTag(fields.ControlPlaneIdentifier) + protowire.SizeBytes(len(identifier))
		tail = fields.AppendHead(tail, controlPlane, size)
		tail = fields.AppendBytes(tail, fields.ControlPlaneIdentifier, identifier)
	}
	r.parts = append(r.parts, mem.SliceBuffer(tail))
	r.size += len(tail)
}
