package relay

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"

	"hdsd/internal/wire"
)

const (
	// largeMessage is the size above which hdsd reads the next message only when this one is on the
	// wire. grpc queues few smaller messages. Up to this size it may keep a request for a retry.
	largeMessage = 256 << 10
	// partSize is about the number of bytes of a large message that a peer has to read in the timeout.
	partSize = 64 << 10
)

// writer writes messages to a peer, one after the other, and gives up when the peer does not read. It
// is for one goroutine.
type writer struct {
	peer    interface{ SendMsg(message any) error }
	timeout time.Duration
	timer   *time.Timer
}

func newWriter(peer interface{ SendMsg(message any) error }, timeout time.Duration, giveUp func()) *writer {
	w := &writer{peer: peer, timeout: timeout, timer: time.AfterFunc(timeout, giveUp)}
	w.timer.Stop()
	return w
}

// write writes a message of one part or several. It returns when a large message is on the wire, or ctx
// ends.
func (w *writer) write(ctx context.Context, message ...[]byte) error {
	w.timer.Reset(w.timeout)
	defer w.timer.Stop()
	if len(message) == 1 && len(message[0]) <= largeMessage {
		buffer := wire.Bytes(message[0])
		return w.peer.SendMsg(&buffer)
	}
	buffer := &large{parts: message, progress: make(chan struct{}, 1)}
	if err := w.peer.SendMsg(buffer); err != nil {
		return err
	}
	for buffer.left.Load() > 0 {
		select {
		case <-buffer.progress: // the peer reads, however slowly
			w.timer.Reset(w.timeout)
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// large is a message that counts its unwritten parts. It implements wire.Marshaler, and is the
// mem.BufferPool to which grpc returns each written part.
type large struct {
	parts    [][]byte
	left     atomic.Int64 // unwritten parts
	progress chan struct{}
}

// MarshalWire implements wire.Marshaler.
func (l *large) MarshalWire() (buffers mem.BufferSlice, err error) {
	for _, bytes := range l.parts {
		chunks := max(1, (len(bytes)+partSize-1)/partSize)
		for part := range slices.Chunk(bytes, max(1, (len(bytes)+chunks-1)/chunks)) {
			if !mem.IsBelowBufferPoolingThreshold(len(part)) { // grpc returns no smaller part
				l.left.Add(1)
			}
			buffers = append(buffers, mem.NewBuffer(&part, l))
		}
	}
	return buffers, nil
}

// Get implements mem.BufferPool. grpc does not call it here.
func (l *large) Get(length int) *[]byte {
	fresh := make([]byte, length)
	return &fresh
}

// Put implements mem.BufferPool.
func (l *large) Put(*[]byte) {
	l.left.Add(-1)
	select {
	case l.progress <- struct{}{}:
	default:
	}
}
