package link

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// maxFields bounds the fields of a message. Decoded, each takes a hundred bytes or more, although two may do on the wire.
const maxFields = 8 << 20

// codec is that of gRPC, but for messages with too many fields.
type codec struct{ encoding.CodecV2 }

var boundedCodec = codec{encoding.GetCodecV2(encodingproto.Name)}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, message any) error {
	m, ok := message.(proto.Message)
	if !ok || data.Len() <= 2*maxFields {
		return c.CodecV2.Unmarshal(data, message)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	if fields.Count(maxFields, m.ProtoReflect().Descriptor(), whole.ReadOnlyData()) < 0 {
		return fmt.Errorf("the message has more than %d fields", maxFields)
	}
	return proto.Unmarshal(whole.ReadOnlyData(), m)
}
