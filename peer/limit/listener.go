package limit

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Parts of the maximum age.
const (
	softShare = 0.8  // clients are asked to move, give or take a tenth
	hardShare = 0.88 // least share at which a connection ends
)

// rememberFor is the time for which Planned knows of an ended connection.
const rememberFor = time.Minute

// ErrAge ends a connection for its age.
var ErrAge = errors.New("the connection has its maximum age")

// SoftAge is the age at which gRPC should ask clients to move. It adds or subtracts a tenth.
func SoftAge(maxAge time.Duration) time.Duration { return time.Duration(softShare * float64(maxAge)) }

// ListenerOptions are the settings of a Listener.
type ListenerOptions struct {
	// Max bounds the open connections; 0: unbounded. A further one is closed at once, since
	// making it wait would look like packet loss. Refused is called then.
	Max     int
	Refused func()

	// MaxAge is the maximum age of a connection; 0: none.
	MaxAge time.Duration

	// Ended gets each connection that Sweep ends, and the reason.
	Ended func(*Conn, error)
}

// Listener accepts connections and knows those that are open.
type Listener struct {
	net.Listener
	o ListenerOptions

	mu      sync.Mutex // guards the fields below
	open    map[*Conn]struct{}
	planned map[string]time.Time // remote addresses of connections that ended for their age
}

// Listen makes a Listener. Connections end when their caller's certificate is not valid any more
// (Hold), and when they have their maximum age. Each draws its own age, from 0.88 of the maximum
// to the whole of it, so that those that began together do not end together. Before that, from
// 0.72 to 0.88 of it, its server asks the client to move (IsOld; gRPC by its own settings), so
// that calls end by themselves. What is left then are streams.
//
// Whoever has a Listener with any of this calls Sweep, about once a second.
func Listen(inner net.Listener, o ListenerOptions) *Listener {
	return &Listener{Listener: inner, o: o, open: map[*Conn]struct{}{}, planned: map[string]time.Time{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: raw, listener: l}
		if l.o.MaxAge > 0 {
			now := time.Now()
			part := func(share float64) time.Time { return now.Add(time.Duration(share * float64(l.o.MaxAge))) }
			c.soft, c.hard = part(softShare*(0.9+0.2*rand.Float64())), part(hardShare+(1-hardShare)*rand.Float64())
		}
		l.mu.Lock()
		full := l.o.Max > 0 && len(l.open) >= l.o.Max
		if !full {
			l.open[c] = struct{}{}
		}
		l.mu.Unlock()
		if !full {
			return c, nil
		}
		l.o.Refused()
		_ = raw.Close() // it was never used
	}
}

// Sweep ends the connections that are due.
func (l *Listener) Sweep(now time.Time) {
	l.mu.Lock()
	conns := make([]*Conn, 0, len(l.open))
	for c := range l.open {
		conns = append(conns, c)
	}
	for address, ended := range l.planned {
		if now.Sub(ended) > rememberFor {
			delete(l.planned, address)
		}
	}
	l.mu.Unlock()
	for _, c := range conns {
		if reason := c.expired(now); reason != nil {
			l.end(c, reason, now)
		}
	}
}

// end ends a connection, unless it has ended by itself.
func (l *Listener) end(c *Conn, reason error, now time.Time) {
	l.mu.Lock()
	_, open := l.open[c]
	if open && errors.Is(reason, ErrAge) {
		l.planned[c.RemoteAddr().String()] = now
	}
	l.mu.Unlock()
	if !open {
		return
	}
	l.o.Ended(c, reason)
	_ = c.Close() // it is over in any case
}

// Planned reports whether the connection from an address has ended for its age: its caller will
// return.
func (l *Listener) Planned(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, planned := l.planned[address]
	return planned
}

// Conn is a connection.
type Conn struct {
	net.Conn
	listener   *Listener
	soft, hard time.Time // zero: none
	check      atomic.Pointer[func() error]
}

// Hold makes Sweep end the connection once check returns an error.
func (c *Conn) Hold(check func() error) { c.check.Store(&check) }

// IsOld reports whether the client should move to another connection.
func (c *Conn) IsOld(now time.Time) bool { return !c.soft.IsZero() && now.After(c.soft) }

// CloseWrite ends the sending side, so that a client can read everything before the connection
// is closed.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// expired returns the reason why the connection has to end, or nil.
func (c *Conn) expired(now time.Time) error {
	if check := c.check.Load(); check != nil {
		if err := (*check)(); err != nil {
			return err
		}
	}
	if !c.hard.IsZero() && now.After(c.hard) {
		return ErrAge
	}
	return nil
}
