package gate

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrClosing refuses or ends a call because the server is closing.
var ErrClosing = status.Error(codes.Unavailable, "hdsd is shutting down; connect again")

// Gate counts the calls of a server. New makes an open one.
type Gate struct {
	closing chan struct{}
	inside  sync.WaitGroup // added to under mu while the gate is open, or by a call that is inside

	mu     sync.Mutex
	closed bool
}

// New makes an open gate.
func New() *Gate { return &Gate{closing: make(chan struct{})} }

// Enter admits a call, unless the gate is closed. An admitted call has to Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

// Leave ends an admitted call.
func (g *Gate) Leave() { g.inside.Done() }

// Go starts a goroutine of a call that is inside; Close waits for it, too.
func (g *Gate) Go(f func()) { g.inside.Go(f) }

// Closing is closed when Close begins.
func (g *Gate) Closing() <-chan struct{} { return g.closing }

// Closed reports whether Close has begun.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Close refuses new calls and waits until those inside have left.
func (g *Gate) Close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.closing)
	}
	g.mu.Unlock()
	g.inside.Wait()
}
