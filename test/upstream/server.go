package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
)

// Protocol is the protocol of an upstream.
type Protocol uint8

// The protocols. HTTPS is HTTP behind TLS.
const (
	HTTP Protocol = iota
	TCP
	HTTPS
)

// Options say what to start.
type Options struct {
	Protocol Protocol

	// Address is host:port on loopback, or the path of a pipe. Port 0 picks one; the
	// default is 127.0.0.1:0. "0.0.0.0:0" serves all of 127.0.0.0/8, so that one Server
	// can be any number of endpoints (see SetAt).
	Address string

	Behaviour Behaviour   // at the start; the zero value is Healthy
	TLS       *tls.Config // for HTTPS; nil is a fresh self-signed certificate
}

// ErrNotLoopback reports an address that others could reach.
var ErrNotLoopback = errors.New("an upstream listens on loopback only")

// Server is a running upstream.
type Server struct {
	protocol Protocol
	network  string // "tcp" or "unix"
	address  string // as bound, the same after Refuse
	tls      *tls.Config
	ca       []byte
	ctx      context.Context
	stop     context.CancelFunc
	stopped  func() bool // removes the hook on the caller's context
	work     sync.WaitGroup
	counts   counter

	mu          sync.Mutex
	closed      bool
	listener    net.Listener // nil while refusing
	held        *os.File     // keeps the address while refusing; nil for a pipe
	connections map[net.Conn]struct{}
	behaviour   Behaviour
	at          map[string]Behaviour // by local IP
	cuts        map[string]Behaviour // by the peer's IP
}

// Start starts an upstream that runs until Close, or until ctx ends.
func Start(ctx context.Context, options Options) (*Server, error) {
	s := &Server{
		protocol:    options.Protocol,
		network:     "tcp",
		address:     options.Address,
		connections: map[net.Conn]struct{}{},
		behaviour:   orHealthy(options.Behaviour),
		at:          map[string]Behaviour{},
		cuts:        map[string]Behaviour{},
	}
	s.counts.init()
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	if strings.HasPrefix(s.address, "/") || strings.HasPrefix(s.address, "@") {
		s.network = "unix"
	} else if err := loopbackOnly(s.address); err != nil {
		return nil, err
	}
	if s.protocol == HTTPS {
		if err := s.prepareTLS(options.TLS); err != nil {
			return nil, err
		}
	}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.listen(); err != nil {
		s.stop()
		return nil, err
	}
	if s.behaviour.Kind == KindRefuse {
		if err := s.refuse(); err != nil {
			s.stop()
			return nil, err
		}
	}
	s.stopped = context.AfterFunc(ctx, s.Close)
	return s, nil
}

func loopbackOnly(address string) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("upstream address %q: want ip:port or a pipe's path: %w", address, err)
	}
	if !a.Addr().IsLoopback() && a.Addr() != netip.IPv4Unspecified() {
		return fmt.Errorf("upstream address %q: %w", address, ErrNotLoopback)
	}
	return nil
}

// Addr returns the address, ip:port or a pipe's path; it does not change.
func (s *Server) Addr() string { return s.address }

// Port returns the port, 0 for a pipe.
func (s *Server) Port() uint32 {
	a, err := netip.ParseAddrPort(s.address)
	if err != nil {
		return 0
	}
	return uint32(a.Port())
}

// Set changes the behaviour. It fails if the Server cannot keep its address while
// refusing, or cannot listen there again.
func (s *Server) Set(b Behaviour) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.behaviour = orHealthy(b)
	if s.behaviour.Kind == KindRefuse {
		return s.refuse()
	}
	if s.listener != nil {
		return nil
	}
	return s.listen()
}

// SetAt changes the behaviour of one IP of a Server that serves many. Refuse resets new
// connections there.
func (s *Server) SetAt(ip string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[ip] = orHealthy(b)
}

// Cut changes the behaviour towards one peer's IP, like a broken network between the
// two. It has precedence over all others. Refuse resets new connections.
func (s *Server) Cut(peer string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts[peer] = orHealthy(b)
}

// Mend undoes Cut.
func (s *Server) Mend(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cuts, peer)
}

// Close stops the Server and waits for its goroutines. It may be called again.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.stop()
		s.drop()
		if s.held != nil {
			s.held.Close()
		}
	}
	s.mu.Unlock()
	s.stopped()
	s.work.Wait()
}

// CA returns the certificate to trust, in PEM. It is nil unless the Server made its own
// certificate for HTTPS.
func (s *Server) CA() []byte { return s.ca }

func orHealthy(b Behaviour) Behaviour {
	if b.Kind == KindAnswer && b.Status == 0 {
		b.Status = 200
	}
	return b
}

// listen starts accepting. The caller holds mu.
func (s *Server) listen() (err error) {
	var listener net.Listener
	if s.held != nil {
		listener, err = listenHeld(s.held)
		s.held = nil
	} else {
		listener, err = (&net.ListenConfig{}).Listen(s.ctx, s.network, s.address)
	}
	if err != nil {
		return fmt.Errorf("upstream listens on %s: %w", s.address, err)
	}
	s.listener, s.address = listener, listener.Addr().String()
	s.work.Go(func() { s.accept(listener) })
	return nil
}

// refuse stops accepting and drops all connections, but keeps the address. The
// caller holds mu.
func (s *Server) refuse() (err error) {
	s.drop()
	if address, bad := netip.ParseAddrPort(s.address); bad == nil && s.held == nil {
		s.held, err = hold(address)
	}
	return err
}

// drop stops accepting and drops all connections. The caller holds mu.
func (s *Server) drop() {
	if s.listener != nil {
		s.listener.Close() //nolint:errcheck // nothing to do about it
		s.listener = nil
	}
	for c := range s.connections {
		reset(c)  // so that no connection lingers
		c.Close() //nolint:errcheck // nothing to do about it
	}
}

func (s *Server) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a temporary lack of file descriptors
		}
		if !s.admit(listener, c) {
			c.Close() //nolint:errcheck // nothing to do about it
		}
	}
}

// admit starts serving a connection, unless the listener is closed.
func (s *Server) admit(listener net.Listener, c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != listener || !fromLoopback(c) {
		return false
	}
	s.connections[c] = struct{}{}
	s.counts.connected()
	s.work.Go(func() {
		s.serve(c)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, c)
	})
	return true
}

func fromLoopback(c net.Conn) bool {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// now returns the behaviour for a connection's peer and local address.
func (s *Server) now(c net.Conn) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.cuts[ip(c.RemoteAddr())]; ok {
		return b
	}
	if b, ok := s.at[ip(c.LocalAddr())]; ok {
		return b
	}
	return s.behaviour
}

// ip returns the IP of a TCP address, "" for a pipe.
func ip(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return ""
}
