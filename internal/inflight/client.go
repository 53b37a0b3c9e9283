package inflight

import (
	"context"
	"encoding/binary"
	"net"
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Ahead is how many bytes of a stream a server may send to a client with DialOptions before that
// asks for the message.
const Ahead = 64 << 10

// DialOptions gives the options of a gRPC client for whose streams Follow works. Other options of
// windows must not follow.
func DialOptions(of credentials.TransportCredentials) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(&following{of}), grpc.WithStaticStreamWindowSize(Ahead), grpc.WithStaticConnWindowSize(connectionWindow),
	}
}

type following struct {
	credentials.TransportCredentials
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *following) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := f.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return &followed{Conn: secured, out: scanner{skip: prefaceBytes}, streams: map[uint32]*Coming{}}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (f *following) Clone() credentials.TransportCredentials {
	return &following{f.TransportCredentials.Clone()}
}

// followed is a connection of a client. It looks at what passes, and changes nothing.
type followed struct {
	net.Conn
	in  scanner // of the goroutine that reads
	out scanner // of the one that writes

	mu      sync.Mutex
	streams map[uint32]*Coming // open ones
}

// Coming tells of the messages of a stream that its server has begun to send.
type Coming struct {
	conn *followed
	more chan struct{} // has one if something has come

	// Guarded by conn.mu.
	head    [messageHeadBytes]byte
	have    int   // of head
	left    int   // bytes of the present message that are to come
	lengths sizes // of messages that Next has not told of
	ended   bool  // no more is to come, or it is not known what
}

// Follow waits until the server of a stream has answered, and returns what comes of it; nil if the
// stream has ended, or its connection has no DialOptions.
func Follow(s grpc.ClientStream) *Coming {
	if header, err := s.Header(); header == nil || err != nil {
		return nil
	}
	p, ok := peer.FromContext(s.Context())
	if !ok {
		return nil
	}
	from, ok := p.Addr.(clientAddress)
	if !ok {
		return nil
	}
	id, ok := clientStreamID(s)
	if !ok {
		return nil
	}
	from.conn.mu.Lock()
	defer from.conn.mu.Unlock()
	return from.conn.streams[id]
}

// clientStreamID reads the number of a stream whose header has come, which grpc keeps to itself and
// does not change any more. A test shows whether a new version of grpc still has it.
func clientStreamID(s grpc.ClientStream) (uint32, bool) {
	v := reflect.ValueOf(s)
	for inner := v; inner.IsValid(); inner = field(inner, "ClientStream") { // grpc wraps it
		v = inner
	}
	id := field(field(field(v, "attempt"), "transportStream"), "id")
	if !id.IsValid() || id.Kind() != reflect.Uint32 {
		return 0, false
	}
	return uint32(id.Uint()), true
}

// field returns a field of what a value points to; not valid: there is none.
func field(of reflect.Value, name string) reflect.Value {
	if of.IsValid() && of.Kind() == reflect.Interface {
		of = of.Elem()
	}
	if !of.IsValid() || of.Kind() != reflect.Pointer || of.IsNil() || of.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return of.Elem().FieldByName(name)
}

// Next waits until the server has begun to send the next message, and returns how many bytes it has;
// 0: that is not known, or there is none. It is called once before each message is asked for. Until
// then, the server can send no more than Ahead of it. The error is that of ctx.
func (c *Coming) Next(ctx context.Context) (bytes int, err error) {
	if c == nil {
		return 0, nil
	}
	for {
		c.conn.mu.Lock()
		some, ended := c.lengths.len() > 0, c.ended
		if some {
			bytes = int(c.lengths.pop())
		}
		c.conn.mu.Unlock()
		if some || ended {
			return bytes, nil
		}
		select {
		case <-c.more:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// tell has Next look again. The caller holds conn.mu.
func (c *Coming) tell() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// RemoteAddr implements net.Conn. It leads from a stream to its connection.
func (c *followed) RemoteAddr() net.Addr { return clientAddress{c.Conn.RemoteAddr(), c} }

type clientAddress struct {
	net.Addr
	conn *followed
}

// Read implements net.Conn.
func (c *followed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	_, _ = c.in.scan(b[:n], c.begin, c.data) // data never fails
	return n, err
}

// Write implements net.Conn.
func (c *followed) Write(b []byte) (int, error) {
	_, _ = c.out.scan(b, c.note, nil)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *followed) Close() error {
	c.endAll()
	return c.Conn.Close()
}

// note takes note of the streams that the client begins and resets.
func (c *followed) note(f frame) {
	switch f.kind {
	case typeHeaders:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams[f.stream] = &Coming{conn: c, more: make(chan struct{}, 1)}
	case typeReset:
		c.end(f.stream)
	}
}

// begin takes note of the streams that the server ends. One that goes away ends any of them.
func (c *followed) begin(f frame) {
	switch {
	case f.kind == typeReset || (f.kind == typeHeaders || f.kind == typeData) && f.flags&flagEndStream != 0:
		c.end(f.stream)
	case f.kind == typeGoAway:
		c.endAll()
	}
}

func (c *followed) end(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(id)
}

func (c *followed) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.streams {
		c.forget(id)
	}
}

// forget forgets a stream. The caller holds mu.
func (c *followed) forget(id uint32) {
	if s := c.streams[id]; s != nil {
		s.ended = true
		s.tell()
		delete(c.streams, id)
	}
}

// data follows the messages of a stream.
func (c *followed) data(id uint32, part []byte) (used int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return len(part), nil
	}
	for used < len(part) {
		if s.left > 0 {
			n := min(s.left, len(part)-used)
			s.left -= n
			used += n
			continue
		}
		n := copy(s.head[s.have:], part[used:])
		used += n
		if s.have += n; s.have < messageHeadBytes {
			break
		}
		s.have, s.left = 0, int(binary.BigEndian.Uint32(s.head[1:]))
		if s.lengths.len() < Ahead { // else nobody asks
			s.lengths.push(int64(messageHeadBytes + s.left))
			s.tell()
		}
	}
	return used, nil
}
