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
	// largeMessage is the size above which a message has to be on the wire before the next
	// one is read. Of smaller ones, grpc queues few. Up to this size it may keep a request
	// for a retry.
	largeMessage = 256 << 10
	// partSize is how much of a large message a peer has to read at a time.
	partSize = 64 << 10
)

// writer writes messages to a peer, one after the other, and gives up when the peer does
// not read. One goroutine uses it.
type writer struct {
	to      interface{ SendMsg(message any) error }
	timeout time.Duration
	stuck   *time.Timer
}

func newWriter(to interface{ SendMsg(message any) error }, timeout time.Duration, giveUp func()) *writer {
	w := &writer{to: to, timeout: timeout, stuck: time.AfterFunc(timeout, giveUp)}
	w.stuck.Stop()
	return w
}

// write writes a message, which is one part or several. Unless ctx ends, a large message is written
// when write returns.
func (w *writer) write(ctx context.Context, message ...[]byte) error {
	w.stuck.Reset(w.timeout)
	defer w.stuck.Stop()
	if len(message) == 1 && len(message[0]) <= largeMessage {
		out := wire.Bytes(message[0])
		return w.to.SendMsg(&out)
	}
	out := &large{parts: message, progress: make(chan struct{}, 1)}
	if err := w.to.SendMsg(out); err != nil {
		return err
	}
	for out.left.Load() > 0 {
		select {
		case <-out.progress: // a slow peer reads, too
			w.stuck.Reset(w.timeout)
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// large is a message that tells how far it is written. It implements wire.Marshaler, and is
// the mem.BufferPool to which grpc returns each part that is written.
type large struct {
	parts    [][]byte
	left     atomic.Int64 // parts that are not written
	progress chan struct{}
}

// MarshalWire implements wire.Marshaler.
func (l *large) MarshalWire() (all mem.BufferSlice, err error) {
	for _, bytes := range l.parts {
		chunks := max(1, (len(bytes)+partSize-1)/partSize)
		for part := range slices.Chunk(bytes, max(1, (len(bytes)+chunks-1)/chunks)) {
			if !mem.IsBelowBufferPoolingThreshold(len(part)) { // grpc does not return smaller ones
				l.left.Add(1)
			}
			all = append(all, mem.NewBuffer(&part, l))
		}
	}
	return all, nil
}

// Get implements mem.BufferPool. Nobody calls it.
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
