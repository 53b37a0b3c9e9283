package conns

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
	softShare = 0.8  // when clients are asked to move, give or take a tenth
	hardShare = 0.88 // the least at which a connection ends
)

// rememberFor is how long Planned knows of a connection that has ended.
const rememberFor = time.Minute

// ErrAge ends a connection for its age.
var ErrAge = errors.New("the connection has its maximum age")

// SoftAge is when gRPC should ask clients to move. It adds a tenth or takes it away.
func SoftAge(maxAge time.Duration) time.Duration { return time.Duration(softShare * float64(maxAge)) }

// Options are what a Listener needs besides a listener.
type Options struct {
	// MaxAge is the maximum age of a connection; 0: none.
	MaxAge time.Duration

	// Ended is told of each connection that Sweep ends, and why.
	Ended func(*Conn, error)
}

// Listener accepts connections and knows those that are open.
type Listener struct {
	net.Listener
	o Options

	mu      sync.Mutex // guards the fields below
	open    map[*Conn]struct{}
	planned map[string]time.Time // remote addresses of those that ended for their age
}

// Listen makes a Listener.
func Listen(on net.Listener, o Options) *Listener {
	return &Listener{Listener: on, o: o, open: map[*Conn]struct{}{}, planned: map[string]time.Time{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: raw, of: l}
	if l.o.MaxAge > 0 {
		now := time.Now()
		part := func(share float64) time.Time { return now.Add(time.Duration(share * float64(l.o.MaxAge))) }
		c.soft, c.hard = part(softShare*(0.9+0.2*rand.Float64())), part(hardShare+(1-hardShare)*rand.Float64())
	}
	l.mu.Lock()
	l.open[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// Sweep ends the connections whose time is over.
func (l *Listener) Sweep(now time.Time) {
	l.mu.Lock()
	all := make([]*Conn, 0, len(l.open))
	for c := range l.open {
		all = append(all, c)
	}
	for address, at := range l.planned {
		if now.Sub(at) > rememberFor {
			delete(l.planned, address)
		}
	}
	l.mu.Unlock()
	for _, c := range all {
		if why := c.over(now); why != nil {
			l.end(c, why, now)
		}
	}
}

// end ends a connection, unless it has ended by itself.
func (l *Listener) end(c *Conn, why error, now time.Time) {
	l.mu.Lock()
	_, open := l.open[c]
	if open && errors.Is(why, ErrAge) {
		l.planned[c.RemoteAddr().String()] = now
	}
	l.mu.Unlock()
	if !open {
		return
	}
	l.o.Ended(c, why)
	_ = c.Close() // it is over in any case
}

// Planned reports whether the connection from an address has ended for its age.
func (l *Listener) Planned(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, planned := l.planned[address]
	return planned
}

// Conn is a connection.
type Conn struct {
	net.Conn
	of         *Listener
	soft, hard time.Time // zero: none
	check      atomic.Pointer[func() error]
}

// Hold ends the connection once check gives an error. Sweep calls it.
func (c *Conn) Hold(check func() error) { c.check.Store(&check) }

// IsOld reports whether the client should move to another connection.
func (c *Conn) IsOld(now time.Time) bool { return !c.soft.IsZero() && now.After(c.soft) }

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// over says why the connection has to end.
func (c *Conn) over(now time.Time) error {
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
