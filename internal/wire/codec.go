package wire

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Marshaler is a message that knows its own wire format.
type Marshaler interface {
	// MarshalWire returns the encoded message. grpc frees each buffer once when
	// it is written: a shared buffer must be given with a reference of its own
	// (Ref), or be one whose Free does nothing (mem.SliceBuffer).
	MarshalWire() (mem.BufferSlice, error)
}

// Unmarshaler is a message that decodes itself, or keeps the bytes as they are.
type Unmarshaler interface {
	// UnmarshalWire takes the encoded message. The buffers are freed when it
	// returns: to keep them, call Ref now and Free later; or copy.
	UnmarshalWire(mem.BufferSlice) error
}

// Codec returns the codec. Its name is that of the standard one, so that peers
// see no difference.
func Codec() encoding.CodecV2 { return codec{} }

// ServerOption makes a grpc.Server use the codec for all its services.
func ServerOption() grpc.ServerOption { return grpc.ForceServerCodecV2(codec{}) }

// standard is what everything else is left to; the import registers it.
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
	return standard.Unmarshal(data, message)
}

// Bytes is a message that is nothing but its encoded form: sent as it stands,
// received as a copy into the same memory.
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
