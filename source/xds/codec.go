package xds

import (
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// incoming is a response to be received. Of one that holds too much, only what
// it answers is decoded.
type incoming struct {
	message proto.Message
	excess  string // why; empty: it is there as a whole
}

// codec is gRPC's own, but that it counts before it decodes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name is empty so that the content type is what it is without a codec.
func (codec) Name() string { return "" }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, to any) error {
	in, ok := to.(*incoming)
	if !ok {
		return c.CodecV2.Unmarshal(data, to)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return in.decode(buffer.ReadOnlyData())
}

func (in *incoming) decode(data []byte) error {
	of := in.message.ProtoReflect().Descriptor()
	w := weigh(of, data)
	if in.excess = w.excess(); in.excess != "" {
		data = head(of, data)
	}
	return proto.Unmarshal(data, in.message)
}
