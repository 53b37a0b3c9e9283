package replicas

import (
	"net"
	"sync"
	"testing"

	"hdsd/test/envoy"
)

// path is how connections fare on their way to a server.
type path uint8

const (
	open   path = iota
	closed      // connections end, and new ones find no listener
	silent      // connections stay, and new ones are accepted, but no byte passes until the path is open again
)

func (s path) String() string { return [...]string{"open", "closed", "silent"}[s] }

// proxy is a path to a server, which the lab cuts.
type proxy struct {
	t               testing.TB
	address, target string

	mu       sync.Mutex
	listener net.Listener          // nil: the path is closed; guarded by mu
	conns    map[net.Conn]struct{} // of both sides; guarded by mu
	passing  chan struct{}         // closed: bytes pass; guarded by mu
	tasks    sync.WaitGroup
}

// newProxy opens a path to a server, until the test ends.
func newProxy(t testing.TB, target string) *proxy {
	p := &proxy{t: t, address: envoy.FreeAddress(t), target: target, conns: map[net.Conn]struct{}{}, passing: make(chan struct{})}
	p.set(open)
	t.Cleanup(func() { p.set(closed); p.tasks.Wait() })
	return p
}

// set changes the path.
func (p *proxy) set(next path) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if next == silent {
		p.passing = make(chan struct{})
	} else if !p.isPassing() {
		close(p.passing)
	}
	if next == closed {
		p.close()
	} else if p.listener == nil {
		listener, err := net.Listen("tcp", p.address)
		if err != nil {
			p.t.Fatal(err)
		}
		p.listener = listener
		p.tasks.Go(func() { p.serve(listener) })
	}
}

func (p *proxy) isPassing() bool {
	select {
	case <-p.passing:
		return true
	default:
		return false
	}
}

// close ends the listener and all connections.
func (p *proxy) close() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for conn := range p.conns {
		conn.Close()
	}
}

// used reports whether there is a connection.
func (p *proxy) used() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}

func (p *proxy) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.join(conn) })
	}
}

// keep notes a connection to end with the path. It returns false if the path is closed.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		conn.Close()
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *proxy) drop(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// wait waits until bytes pass.
func (p *proxy) wait() {
	p.mu.Lock()
	passing := p.passing
	p.mu.Unlock()
	<-passing
}

// join joins a client to the server.
func (p *proxy) join(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	p.wait()
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	var sides sync.WaitGroup
	sides.Go(func() { p.copy(server, client) })
	sides.Go(func() { p.copy(client, server) })
	sides.Wait()
}

// copy copies bytes until one side ends, and ends both: the other one learns of that as soon as bytes pass.
func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	defer p.wait()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.wait()
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
