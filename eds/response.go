package eds

import (
	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/internal/fields"
)

// response is a message of shared frames and a tail of its own.
type response struct {
	parts  mem.BufferSlice
	size   int
	rare   *rare         // nil in most responses
	digest xxhash.Digest // of names and versions
	since  int64         // when the oldest change in it was made, by publication.now; 0: there is none

	// Room for what most responses are: one resource, and the tail.
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

func (r *response) more() *rare {
	if r.rare == nil {
		r.rare = new(rare)
	}
	return r.rare
}

func (r *rare) append(b []byte, errors protowire.Number) []byte {
	for _, w := range r.removed {
		if w.located {
			b = appendResourceName(b, deltaRemovedLocated, w.slot)
		} else {
			b = appendText(b, deltaRemovedResources, w.slot.name)
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
	more := r.more()
	more.removed = append(more.removed, w)
	key := w.key()
	r.size += protowire.SizeTag(deltaRemovedResources) + protowire.SizeBytes(len(key))
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

// finish adds the part that is the client's own.
func (r *response) finish(typeURL string, delta bool, nonce, identifier string) {
	controlPlane, errors := protowire.Number(sotwControlPlane), protowire.Number(sotwErrors)
	if delta {
		controlPlane, errors = deltaControlPlane, deltaErrors
	}
	tail := fields.AppendHead(r.tailRoom[:0], responseVersion, versionDigits)
	tail = appendVersion(tail, r.digest.Sum64())
	tail = appendText(tail, responseTypeURL, typeURL)
	tail = appendText(tail, responseNonce, nonce)
	if r.rare != nil {
		tail = r.rare.append(tail, errors)
	}
	if identifier != "" {
		size := protowire.SizeTag(controlPlaneIdentifier) + protowire.SizeBytes(len(identifier))
		tail = fields.AppendHead(tail, controlPlane, size)
		tail = appendText(tail, controlPlaneIdentifier, identifier)
	}
	r.parts = append(r.parts, mem.SliceBuffer(tail))
	r.size += len(tail)
}
