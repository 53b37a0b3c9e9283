package wire

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// Marshaler is a message that encodes itself.
type Marshaler interface {
	// MarshalWire returns the encoded message. grpc frees each buffer once it is
	// written. A shared buffer needs a reference for each message (Ref), or a Free that
	// does nothing (mem.SliceBuffer).
	MarshalWire() (mem.BufferSlice, error)
}

// Unmarshaler is a message that decodes itself, or keeps its encoded form.
type Unmarshaler interface {
	// UnmarshalWire gets the encoded message. The buffers are freed when it returns. To
	// keep them, call Ref now and Free later, or copy.
	UnmarshalWire(mem.BufferSlice) error
}

// Codec returns the codec. It has the name of the standard codec, so that peers see no
// difference.
func Codec() encoding.CodecV2 { return codec{} }

// ServerOption makes a grpc.Server use the codec for all its services.
func ServerOption() grpc.ServerOption { return grpc.ForceServerCodecV2(codec{}) }

// standard encodes every other message; the import registers it.
var standard = encoding.GetCodecV2(proto.Name)

type codec struct{}

// Name implements encoding.CodecV2.
func (codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(message any) (mem.BufferSlice, error) {
	if m, ok := message.(Marshaler); ok {
		return m.MarshalWire()
	}
	return standard.Marshal(message)
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, message any) error {
	if m, ok := message.(Unmarshaler); ok {
		return m.UnmarshalWire(data)
	}
	if m, ok := message.(protobuf.Message); ok && data.Len() > fewBytes {
		if size := data.Len(); size > maxBytes {
			return fmt.Errorf("a %s may have up to %d bytes, and this one has %d"+tooLarge, m.ProtoReflect().Descriptor().FullName(), maxBytes, size)
		}
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		if fields.Count(maxFields, m.ProtoReflect().Descriptor(), whole.ReadOnlyData()) < 0 {
			return fmt.Errorf("a %s may have up to %d fields"+tooLarge, m.ProtoReflect().Descriptor().FullName(), maxFields)
		}
		return protobuf.Unmarshal(whole.ReadOnlyData(), m)
	}
	return standard.Unmarshal(data, message)
}

// A message of the standard codec may have up to maxBytes and, if it is larger than
// fewBytes, up to maxFields. Messages with more decode themselves.
const (
	fewBytes  = 64 << 10
	maxBytes  = 4 << 20
	maxFields = 64 << 10
)

// Bytes is a message in encoded form. It is sent unchanged, and received as a copy into
// the same memory.
type Bytes []byte

// MarshalWire implements Marshaler. The bytes are not copied: they must not
// change until they are written.
func (b *Bytes) MarshalWire() (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// UnmarshalWire implements Unmarshaler.
func (b *Bytes) UnmarshalWire(data mem.BufferSlice) error {
	size := data.Len()
	if cap(*b) < size {
		*b = make([]byte, size)
	}
	*b = (*b)[:size]
	data.CopyTo(*b)
	return nil
}
