package inflight

import (
	"context"
	"encoding/binary"
	"net"
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
)

// ReadAhead bounds the bytes of a stream that a server sends to a client with DialOptions before the
// client asks for a message.
const ReadAhead = 64 << 10

// DialOptions returns the options of a gRPC client whose streams Follow can follow. No later option
// may set a window.
func DialOptions(secure credentials.TransportCredentials) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(&clientCredentials{secure}), grpc.WithStaticStreamWindowSize(ReadAhead), grpc.WithStaticConnWindowSize(connectionWindow),
	}
}

// clientCredentials wrap each connection in a clientConn.
type clientCredentials struct {
	credentials.TransportCredentials
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *clientCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := f.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	c := &clientConn{Conn: secured, output: scanner{skip: prefaceBytes}, streams: map[uint32]*Arrivals{}}
	c.input.change = c.goAway
	return c, info, nil
}

// Clone implements credentials.TransportCredentials.
func (f *clientCredentials) Clone() credentials.TransportCredentials {
	return &clientCredentials{f.TransportCredentials.Clone()}
}

// clientConn is a connection of a client. It reads passing frames, and changes nothing.
type clientConn struct {
	net.Conn
	input  scanner // owned by the goroutine that reads
	last   uint32  // last stream served after a GOAWAY; owned by the goroutine that reads
	output scanner // owned by the goroutine that writes

	mu      sync.Mutex
	streams map[uint32]*Arrivals // by id, while they are open
}

// Arrivals knows the sizes of the messages that the server of a stream begins to send.
type Arrivals struct {
	conn   *clientConn
	wakeup chan struct{} // holds one value after a change

	// Guarded by conn.mu.
	head     [messageHeadBytes]byte
	headSize int   // bytes of head that have arrived
	bodyLeft int   // missing bytes of the present message
	lengths  sizes // sizes of messages that Next has not returned
	ended    bool  // no message follows, or the next size is unknown
}

// Follow waits until the server of a stream answers, and returns the arrivals of the stream. It
// returns nil if the stream has ended, or its connection has no DialOptions.
func Follow(s grpc.ClientStream) *Arrivals {
	if header, err := s.Header(); header == nil || err != nil {
		return nil
	}
	p, ok := grpcpeer.FromContext(s.Context())
	if !ok {
		return nil
	}
	address, ok := p.Addr.(clientAddress)
	if !ok {
		return nil
	}
	id, ok := clientStreamID(s)
	if !ok {
		return nil
	}
	address.conn.mu.Lock()
	defer address.conn.mu.Unlock()
	return address.conn.streams[id]
}

// clientStreamID reads the number of a stream whose header has arrived. grpc hides that number, and
// does not change it after the header. A test shows whether a new version of grpc still has it.
func clientStreamID(s grpc.ClientStream) (uint32, bool) {
	v := reflect.ValueOf(s)
	for inner := v; inner.IsValid(); inner = field(inner, "ClientStream") { // grpc wraps it
		v = inner
	}
	return idOf(field(field(v, "attempt"), "transportStream"))
}

// idOf reads the number in the field id of the struct to which a value points.
func idOf(stream reflect.Value) (uint32, bool) {
	id := field(stream, "id")
	if !id.IsValid() || id.Kind() != reflect.Uint32 {
		return 0, false
	}
	return uint32(id.Uint()), true
}

// field returns a field of the struct to which a value points; the result is invalid without one.
func field(v reflect.Value, name string) reflect.Value {
	if v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.Elem().FieldByName(name)
}

// Next waits until the server begins to send the next message, and returns its size in bytes,
// with its head. It returns 0 if the size is unknown, or if no message follows. Call it once
// before you ask for a message: until then, the server sends no more than ReadAhead bytes of it.
// The error is that of ctx.
func (a *Arrivals) Next(ctx context.Context) (bytes int, err error) {
	if a == nil {
		return 0, nil
	}
	for {
		a.conn.mu.Lock()
		found, ended := a.lengths.len() > 0, a.ended
		if found {
			bytes = int(a.lengths.pop())
		}
		a.conn.mu.Unlock()
		if found || ended {
			return bytes, nil
		}
		select {
		case <-a.wakeup:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// wake makes Next look again. The caller holds conn.mu.
func (a *Arrivals) wake() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// RemoteAddr implements net.Conn. It leads from a stream to its connection.
func (c *clientConn) RemoteAddr() net.Addr { return clientAddress{c.Conn.RemoteAddr(), c} }

type clientAddress struct {
	net.Addr
	conn *clientConn
}

// Read implements net.Conn.
func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	_, _ = c.input.scan(b[:n], c.begin, c.data)
	return n, err
}

// Write implements net.Conn.
func (c *clientConn) Write(b []byte) (int, error) {
	_, _ = c.output.scan(b, c.note, nil)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	c.endAfter(0)
	return c.Conn.Close()
}

// note records the streams that the client begins or resets.
func (c *clientConn) note(f frame) {
	switch f.kind {
	case typeHeaders:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams[f.stream] = &Arrivals{conn: c, wakeup: make(chan struct{}, 1)}
	case typeReset:
		c.end(f.stream)
	}
}

// begin records the streams that the server ends.
func (c *clientConn) begin(f frame) {
	if f.kind == typeReset || (f.kind == typeHeaders || f.kind == typeData) && f.flags&flagEndStream != 0 {
		c.end(f.stream)
	}
}

// goAway ends the streams that the server no longer serves. The others go on.
func (c *clientConn) goAway(f frame, offset int, part []byte) {
	if f.kind != typeGoAway {
		return
	}
	for i := range part[:min(len(part), max(lastStreamBytes-offset, 0))] {
		if c.last = c.last<<8 | uint32(part[i]); offset+i+1 == lastStreamBytes {
			c.endAfter(c.last &^ (1 << 31))
		}
	}
}

func (c *clientConn) end(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(id)
}

// endAfter ends the streams with ids above last.
func (c *clientConn) endAfter(last uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.streams {
		if id > last {
			c.forget(id)
		}
	}
}

// forget forgets a stream. The caller holds mu.
func (c *clientConn) forget(id uint32) {
	if s := c.streams[id]; s != nil {
		s.ended = true
		s.wake()
		delete(c.streams, id)
	}
}

// data reads the heads of the messages of a stream. It never fails.
func (c *clientConn) data(id uint32, part []byte) (used int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return len(part), nil
	}
	for used < len(part) {
		if s.bodyLeft > 0 {
			n := min(s.bodyLeft, len(part)-used)
			s.bodyLeft -= n
			used += n
			continue
		}
		n := copy(s.head[s.headSize:], part[used:])
		used += n
		if s.headSize += n; s.headSize < messageHeadBytes {
			break
		}
		s.headSize, s.bodyLeft = 0, int(binary.BigEndian.Uint32(s.head[1:]))
		if s.lengths.len() < ReadAhead { // else nothing calls Next
			s.lengths.push(int64(messageHeadBytes + s.bodyLeft))
			s.wake()
		}
	}
	return used, nil
}
