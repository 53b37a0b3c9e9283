package relay

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"hdsd/internal/wire"
)

// largeRequest is the size above which a request has to be on the wire before the client's
// next one is read, which gives back the client's bytes in flight. Of smaller ones, grpc
// queues few; up to this size it may keep one for a retry.
const largeRequest = 256 << 10

// passOn sends a request to the control plane.
func passOn(ctx context.Context, up grpc.ClientStream, request []byte) error {
	if len(request) <= largeRequest {
		out := wire.Bytes(request)
		return up.SendMsg(&out)
	}
	out := &large{bytes: request, written: make(chan struct{})}
	if err := up.SendMsg(out); err != nil {
		return err
	}
	select {
	case <-out.written:
	case <-ctx.Done():
	}
	return nil
}

// large is a request that tells when it is written. It implements wire.Marshaler, and is the
// mem.BufferPool to which grpc returns the bytes then.
type large struct {
	bytes   []byte
	written chan struct{}
}

// MarshalWire implements wire.Marshaler.
func (l *large) MarshalWire() (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.NewBuffer(&l.bytes, l)}, nil
}

// Get implements mem.BufferPool. Nobody calls it.
func (l *large) Get(length int) *[]byte {
	fresh := make([]byte, length)
	return &fresh
}

// Put implements mem.BufferPool.
func (l *large) Put(*[]byte) { close(l.written) }
