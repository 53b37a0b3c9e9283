package eds

import (
	"encoding/hex"
	"slices"

	"hdsd/envoy/fields"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	versionDigits = 16
	versionStart  = 2 // in a Resource: after tag and length
)

// frame is one encoded resource. It does not change once it is made. Its bytes are a
// resources entry of a DeltaDiscoveryResponse. The part from body on is also a
// resources entry of a DiscoveryResponse, because Resource.resource and
// DiscoveryResponse.resources are both an Any in field 2.
type frame struct {
	bytes    []byte
	resource int // where the Resource begins, after its tag and length
	body     int // where its Any begins, with tag and length
	value    int // where the message in the Any begins
	version  uint64
	service  string // the assignment that an EDS Cluster needs; else empty
	checked  bool   // the Cluster's health is only in that assignment
	needed   int64  // time since which the Cluster needs it, in Unix nanoseconds

	// The bytes, and those from body on, as grpc takes them, for every stream.
	delta, state mem.Buffer
}

// newFrame encodes the message of a resource. The caller sets the version.
func newFrame(typeURL, name string, message []byte) *frame {
	sizeOfAny := protowire.SizeTag(fields.AnyTypeURL) + protowire.SizeBytes(len(typeURL)) +
		protowire.SizeTag(fields.AnyValue) + protowire.SizeBytes(len(message))
	sizeOfResource := versionStart + versionDigits +
		protowire.SizeTag(fields.ResourceName) + protowire.SizeBytes(len(name)) +
		protowire.SizeTag(fields.ResourceBody) + protowire.SizeBytes(sizeOfAny)

	b := make([]byte, 0, protowire.SizeTag(fields.ResponseResources)+protowire.SizeBytes(sizeOfResource))
	b = fields.AppendHead(b, fields.ResponseResources, sizeOfResource)
	f := &frame{resource: len(b)}
	b = fields.AppendHead(b, fields.ResourceVersion, versionDigits)
	b = append(b, "0000000000000000"...)
	b = fields.AppendBytes(b, fields.ResourceName, name)
	f.body = len(b)
	b = fields.AppendHead(b, fields.ResourceBody, sizeOfAny)
	b = fields.AppendBytes(b, fields.AnyTypeURL, typeURL)
	b = fields.AppendHead(b, fields.AnyValue, len(message))
	f.value = len(b)
	f.bytes = append(b, message...)
	f.share()
	return f
}

// share makes the buffers again after bytes was replaced. They are never freed, so that grpc
// does not count references to them.
func (f *frame) share() {
	f.delta, f.state = mem.SliceBuffer(f.bytes), mem.SliceBuffer(f.bytes[f.body:])
}

// buffer returns the entry in responses of delta, or of the state of the world.
func (f *frame) buffer(delta bool) mem.Buffer {
	if delta {
		return f.delta
	}
	return f.state
}

// setVersion is called while the frame is being made.
func (f *frame) setVersion(version uint64) {
	f.version = max(version, 1) // 0 stands for no version
	putVersion(f.bytes[f.resource+versionStart:], f.version)
}

// size returns 0 for no frame.
func (f *frame) size() int {
	if f == nil {
		return 0
	}
	return len(f.bytes)
}

// clone returns a copy, to be made the next frame.
func (f *frame) clone() *frame {
	c := *f
	c.bytes = slices.Clone(f.bytes)
	c.share()
	return &c
}

func putVersion(b []byte, version uint64) {
	var raw [8]byte
	for i := range raw {
		raw[i] = byte(version >> (56 - 8*i))
	}
	hex.Encode(b[:versionDigits], raw[:])
}

func formatVersion(version uint64) string { return string(appendVersion(nil, version)) }

func appendVersion(b []byte, version uint64) []byte {
	b = append(b, "0000000000000000"...)
	putVersion(b[len(b)-versionDigits:], version)
	return b
}

// parseVersion returns 0 for text that is not a version of hdsd's.
func parseVersion(text string) uint64 {
	var raw [8]byte
	if len(text) != versionDigits {
		return 0
	}
	if _, err := hex.Decode(raw[:], []byte(text)); err != nil {
		return 0
	}
	version := uint64(0)
	for _, b := range raw {
		version = version<<8 | uint64(b)
	}
	return version
}
