package coordinator

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// limited is a listener that bounds the open connections. It closes one more at once:
// to let it wait would look like packet loss.
type limited struct {
	net.Listener // of TCP
	limit        int64
	open         atomic.Int64
	refused      func()
}

func (c *calls) limited(l net.Listener, limits *configv1.Limits) net.Listener {
	return &limited{Listener: l, limit: int64(limits.GetMaxConnections()), refused: c.closed.Inc}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.limit {
			return &accepted{c.(*net.TCPConn), sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refused()
		_ = c.Close() // it was never used
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

// timed bounds how long clients may take to send a body and to read the response.
// Handlers that take longer set their own deadlines.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control, now := http.NewResponseController(w), time.Now()
		// Only a writer that is not on a network lacks deadlines.
		_ = control.SetWriteDeadline(now.Add(answerTimeout))
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(headerTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
