package scale

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
)

// door lets connections read, or not: what comes stays with the kernel, and the sender finds
// that nobody takes it.
type door struct {
	mu     sync.Mutex
	opened chan struct{} // closed while they may read
}

func newDoor() *door {
	d := &door{opened: make(chan struct{})}
	close(d.opened)
	return d
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = make(chan struct{})
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.opened)
}

// wait waits until the connection may read, or is closed.
func (d *door) wait(closed <-chan struct{}) {
	d.mu.Lock()
	opened := d.opened
	d.mu.Unlock()
	select {
	case <-opened:
	case <-closed:
	}
}

// dialer makes connections that read when the door is open.
func (d *door) dialer() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		closed := make(chan struct{})
		return &behind{c, d, closed, sync.OnceFunc(func() { close(closed) })}, nil
	})
}

// behind is a connection behind a door.
type behind struct {
	net.Conn
	door   *door
	closed chan struct{}
	close  func()
}

// Read implements net.Conn.
func (b *behind) Read(p []byte) (int, error) {
	b.door.wait(b.closed)
	n, err := b.Conn.Read(p)
	b.door.wait(b.closed) // it may have been shut meanwhile
	return n, err
}

// Close implements net.Conn.
func (b *behind) Close() error {
	b.close()
	return b.Conn.Close()
}
