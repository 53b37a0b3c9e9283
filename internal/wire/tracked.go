package wire

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Tracked is an answer that tells how far grpc is with it. A handler has returned long before
// its client has read a large answer, which stays in memory meanwhile.
type Tracked struct {
	Message any    // a proto.Message
	Encoded func() // called once it is encoded
	Done    func() // called once grpc has written it or dropped it; not when the connection ends before
}

// MarshalWire implements Marshaler.
func (t *Tracked) MarshalWire() (mem.BufferSlice, error) {
	message, ok := t.Message.(proto.Message)
	if !ok {
		t.Done()
		return nil, fmt.Errorf("%T is no message", t.Message)
	}
	data, err := proto.Marshal(message)
	t.Encoded()
	if err != nil || mem.IsBelowBufferPoolingThreshold(cap(data)) {
		t.Done()
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	return mem.BufferSlice{mem.NewBuffer(&data, freed{t.Done})}, nil
}

// freed is the mem.BufferPool of one buffer, which it does not use again. It tells when grpc has
// freed the buffer.
type freed struct{ tell func() }

// Get implements mem.BufferPool.
func (freed) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put implements mem.BufferPool.
func (f freed) Put(*[]byte) { f.tell() }
