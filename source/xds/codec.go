package xds

import (
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
)

// incoming is a response to receive. If it exceeds a limit, only its head is decoded:
// what a NACK needs.
type incoming struct {
	message proto.Message
	excess  string // the exceeded limit; empty: all of it is decoded
}

// codec is gRPC's own, except that it counts before it decodes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name is empty, which leaves the content type as it is without a codec.
func (codec) Name() string { return "" }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return in.decode(buffer.ReadOnlyData())
}

func (in *incoming) decode(data []byte) error {
	descriptor := in.message.ProtoReflect().Descriptor()
	w := rules.Weigh(descriptor, data)
	if in.excess = w.Excess(); in.excess != "" {
		data = keepHead(descriptor, data)
	}
	return proto.Unmarshal(data, in.message)
}
