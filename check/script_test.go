package check

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// script is what an upstream does with a connection, until it closes it.
type script func(net.Conn)

// scripted is an upstream that follows a script. A new script ends the
// connections that followed another.
type scripted struct {
	listener net.Listener
	work     sync.WaitGroup

	mu          sync.Mutex
	script      script
	connections map[net.Conn]struct{}
}

func startScripted(t testing.TB, s script) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &scripted{listener: l, script: s, connections: map[net.Conn]struct{}{}}
	u.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.follow(c)
		}
	})
	t.Cleanup(func() {
		l.Close()
		u.set(func(net.Conn) {})
		u.work.Wait()
	})
	return u
}

func (u *scripted) addr() string { return u.listener.Addr().String() }

func (u *scripted) set(s script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script = s
	for c := range u.connections {
		c.Close()
	}
}

func (u *scripted) follow(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.connections[c] = struct{}{}
	s := u.script
	u.work.Go(func() {
		s(c)
		c.Close()
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.connections, c)
	})
}

// peer2 is the server's side of an HTTP/2 connection.
type peer2 struct {
	*http2.Framer
	conn    net.Conn
	block   bytes.Buffer
	fields  *hpack.Encoder
	asked   map[string]string // the fields of the latest request
	payload string
}

// over2 answers each request, by HTTP/2.
func over2(answer func(p *peer2, stream uint32)) script {
	return func(c net.Conn) {
		p := &peer2{Framer: http2.NewFramer(c, c), conn: c}
		p.AllowIllegalWrites = true
		p.fields = hpack.NewEncoder(&p.block)
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		p.WriteSettings()
		p.serve(answer)
	}
}

func (p *peer2) serve(answer func(p *peer2, stream uint32)) {
	decoder := hpack.NewDecoder(4096, func(f hpack.HeaderField) { p.asked[f.Name] = f.Value })
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				p.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			p.asked, p.payload = map[string]string{}, ""
			decoder.Write(f.HeaderBlockFragment())
			ended = f.StreamEnded()
		case *http2.DataFrame:
			p.payload += string(f.Data())
			ended = f.StreamEnded()
		}
		if ended {
			answer(p, f.Header().StreamID)
		}
	}
}

// headers sends fields, given as name and value in turn.
func (p *peer2) headers(stream uint32, ends bool, pairs ...string) {
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.encode(pairs...), EndHeaders: true, EndStream: ends})
}

func (p *peer2) encode(pairs ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		p.fields.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return p.block.Bytes()
}

// writes takes all that comes, and writes these bytes first.
func writes(b string) script {
	return func(c net.Conn) {
		io.WriteString(c, b)
		io.Copy(io.Discard, c)
	}
}

// afterSome writes bytes once something has come, then takes all that comes.
func afterSome(b string) script {
	return func(c net.Conn) {
		c.Read(make([]byte, 512))
		writes(b)(c)
	}
}

// closesAfterSome closes instead of answering.
func closesAfterSome(c net.Conn) { c.Read(make([]byte, 512)) }

// resetsAfterSome resets instead of answering.
func resetsAfterSome(c net.Conn) {
	c.Read(make([]byte, 512))
	c.(*net.TCPConn).SetLinger(0)
}
