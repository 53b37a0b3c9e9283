package coordinator

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// limited is a listener with so many connections at most. One more is closed
// at once: to let it wait would look like a network that loses packets.
type limited struct {
	net.Listener // of TCP
	most         int64
	open         atomic.Int64
	refused      func()
}

func (c *calls) limited(l net.Listener, limits *configv1.Limits) net.Listener {
	return &limited{Listener: l, most: int64(limits.GetMaxConnections()), refused: c.closed.Inc}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &accepted{c.(*net.TCPConn), sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refused()
		c.Close() // it was never used
	}
}

// accepted is a connection that is counted.
type accepted struct {
	*net.TCPConn
	leave func()
}

// Close implements net.Conn.
func (a *accepted) Close() error {
	defer a.leave()
	return a.TCPConn.Close()
}

// timed bounds how long clients may take to send a body and to take an answer
// in. Handlers of what takes longer set deadlines of their own.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control, now := http.NewResponseController(w), time.Now()
		// A writer that knows no deadlines is not one of a server on a network.
		_ = control.SetWriteDeadline(now.Add(answerTimeout))
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(headerTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
