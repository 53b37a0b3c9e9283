package relay

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/mem"

	"hdsd/internal/wire"
)

// reader is a peer that has what it is sent, and reads when it is told to.
type reader struct {
	parts mem.BufferSlice
	read  []byte
}

func (r *reader) SendMsg(m any) (err error) {
	r.parts, err = m.(wire.Marshaler).MarshalWire() //nolint:forcetypeassert // the relay sends nothing else
	return err
}

func (r *reader) next() bool {
	if len(r.parts) == 0 {
		return false
	}
	r.read = append(r.read, r.parts[0].ReadOnlyData()...)
	r.parts[0].Free()
	r.parts = r.parts[1:]
	return len(r.parts) > 0
}

const testTimeout = 12 * time.Second

// startWrite writes a message of some size. It returns whether that has returned, and whether it
// was given up.
func startWrite(ctx context.Context, peer *reader, message []byte) (done, gaveUp chan struct{}) {
	done, gaveUp = make(chan struct{}), make(chan struct{})
	w := newWriter(peer, testTimeout, func() { close(gaveUp) })
	go func() { defer close(done); _ = w.write(ctx, message) }()
	synctest.Wait()
	return done, gaveUp
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestALargeMessageIsWrittenWhenItIsRead, however slowly: each part has its own time.
func TestALargeMessageIsWrittenWhenItIsRead(t *testing.T) {
	for _, size := range []int{largeMessage + 1, 3*largeMessage + 7, 20 << 20} {
		synctest.Test(t, func(t *testing.T) {
			peer, message := &reader{}, bytes.Repeat([]byte("12345678901"), size/11+1)[:size]
			done, gaveUp := startWrite(t.Context(), peer, message)
			for unread := true; unread; {
				if time.Sleep(testTimeout - time.Second); closed(done) {
					t.Fatalf("written before the last of %d bytes is read", size)
				}
				unread = peer.next()
				synctest.Wait()
			}
			if !closed(done) || closed(gaveUp) || !bytes.Equal(peer.read, message) {
				t.Errorf("%d bytes: written: %t, given up: %t, read %d", size, closed(done), closed(gaveUp), len(peer.read))
			}
		})
	}
}

// TestAPeerThatDoesNotRead is given up, in the middle of a message as well.
func TestAPeerThatDoesNotRead(t *testing.T) {
	for _, parts := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			peer := &reader{}
			ctx, cancel := context.WithCancel(t.Context())
			done, gaveUp := startWrite(ctx, peer, make([]byte, 1<<20))
			for range parts {
				peer.next()
			}
			synctest.Wait()
			if time.Sleep(testTimeout - time.Nanosecond); closed(gaveUp) {
				t.Error("given up too early")
			}
			time.Sleep(time.Nanosecond)
			if synctest.Wait(); !closed(gaveUp) || closed(done) {
				t.Errorf("given up: %t, written: %t", closed(gaveUp), closed(done))
			}
			cancel()
			<-done
		})
	}
}

// TestASmallMessageIsWrittenAtOnce: grpc queues it.
func TestASmallMessageIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := &reader{}
		done, gaveUp := startWrite(t.Context(), peer, make([]byte, largeMessage))
		if time.Sleep(2 * testTimeout); !closed(done) || closed(gaveUp) {
			t.Errorf("written: %t, given up: %t", closed(done), closed(gaveUp))
		}
	})
}
