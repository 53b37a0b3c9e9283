package check

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
)

// counted counts the connections that a script gets.
func counted(s script) (script, *atomic.Int64) {
	var n atomic.Int64
	return func(c net.Conn) { n.Add(1); s(c) }, &n
}

func checkOf(edits ...func(*base)) *base {
	c := timing()
	for _, e := range edits {
		e(c)
	}
	return c
}

func probedTimes(n *atomic.Int64, inner answer2) answer2 {
	return func(p *peer2, s uint32) { n.Add(1); inner(p, s) }
}

// Connections are kept from probe to probe, or not.
func TestReusesWire(t *testing.T) {
	var probes atomic.Int64
	pong := func(c net.Conn) {
		for b := make([]byte, 512); ; probes.Add(1) {
			if _, err := c.Read(b); err != nil {
				return
			}
			io.WriteString(c, "+PONG\r\n")
		}
	}
	for name, test := range map[string]struct {
		check  func(*base)
		script script
	}{
		"http2": {over2Check, over2(probedTimes(&probes, ok2))},
		"grpc":  {grpcCheckOf, over2(probedTimes(&probes, sayServing))},
		"redis": {redisCheckOf(""), pong},
	} {
		for _, reuse := range []bool{true, false} {
			probes.Store(0)
			s, connections := counted(test.script)
			u := startScripted(t, s)
			p := startPool(t)
			apply(t, p, one(checkOf(test.check, func(c *base) {
				c.ReuseConnection, c.Interval = wrapperspb.Bool(reuse), c.GetNoTrafficInterval()
			}), endpoint(u.addr())))
			eventually(t, func() (any, bool) { return probes.Load(), probes.Load() >= 5 })
			if n := connections.Load(); (n == 1) != reuse {
				t.Errorf("%s, reuse %t: %d connections for %d probes", name, reuse, n, probes.Load())
			}
			apply(t, p, specifierOf())
		}
	}
}

// A gRPC check that times out goes on with its connection; one by HTTP/2
// makes another.
func TestTimeoutKeepsConnection(t *testing.T) {
	for name, test := range map[string]struct {
		check func(*base)
		keeps bool
	}{"grpc": {grpcCheckOf, true}, "http2": {over2Check, false}} {
		var probes atomic.Int64
		s, connections := counted(over2(probedTimes(&probes, func(*peer2, uint32) {})))
		u := startScripted(t, s)
		p := startPool(t)
		// A connection takes a part of the first timeout, more of it on a busy machine.
		apply(t, p, one(checkOf(test.check, func(c *base) { c.Timeout = durationpb.New(500 * time.Millisecond) }), endpoint(u.addr())))
		eventually(t, func() (any, bool) { return probes.Load(), probes.Load() >= 3 })
		if got := p.all()[0].status; got != health.Timeout {
			t.Errorf("%s: %s", name, got)
		}
		if n := connections.Load(); (n == 1) != test.keeps {
			t.Errorf("%s: %d connections", name, n)
		}
	}
}

// A payload that is larger than the peer takes at once is sent in parts, on
// one connection for probe after probe.
func TestFlowControl(t *testing.T) {
	const size = 100_000
	var whole atomic.Int64
	u := startScripted(t, func(c net.Conn) {
		p := &peer2{Framer: http2.NewFramer(c, c), conn: c}
		io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		got, late := 0, 0
		for {
			f, err := p.ReadFrame()
			if err != nil {
				return
			}
			d, ok := f.(*http2.DataFrame)
			if !ok {
				continue
			}
			if got += len(d.Data()); d.StreamEnded() {
				if got == size {
					whole.Add(1)
				}
				got = 0
				p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, d.StreamID, []byte{0x88}) // 200
				continue
			}
			if late++; late > 1 {
				p.WriteWindowUpdate(0, uint32(len(d.Data())))
			}
			p.WriteWindowUpdate(d.StreamID, 40_000)
		}
	})
	p := startPool(t)
	apply(t, p, one(checkOf(posting, func(c *base) {
		c.GetHttpHealthCheck().Send = payload(strings.Repeat("x", size))
	}), endpoint(u.addr())))
	eventually(t, func() (any, bool) { return whole.Load(), whole.Load() >= 2 })
	waitFor(t, p, seen{up, 200})
}

// Between probes a peer may ask for life, go away, or send half a frame.
func TestBetweenProbes(t *testing.T) {
	var pings, probes atomic.Int64
	s, connections := counted(func(c net.Conn) {
		p := &peer2{Framer: http2.NewFramer(c, c), conn: c}
		io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		p.WriteSettings()
		for {
			f, err := p.ReadFrame()
			switch f := f.(type) {
			case *http2.HeadersFrame:
				if probes.Add(1) > 1 {
					io.WriteString(c, "pings!") // the rest of the frame
				}
				p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, f.StreamID, []byte{0x88})
				io.WriteString(c, "\x00\x00\x08\x06\x00\x00\x00\x00\x00go") // a PING without its end
			case *http2.PingFrame:
				if f.IsAck() && string(f.Data[:]) == "gopings!" {
					pings.Add(1)
				}
			}
			if err != nil {
				return
			}
		}
	})
	u := startScripted(t, s)
	p := startPool(t)
	apply(t, p, one(checkOf(over2Check), endpoint(u.addr())))
	eventually(t, func() (any, bool) { return pings.Load(), pings.Load() >= 5 })
	waitFor(t, p, seen{up, 200})
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	var answers atomic.Int64
	u.set(over2(probedTimes(&answers, func(p *peer2, s uint32) { ok2(p, s); p.WriteGoAway(s, http2.ErrCodeNo, nil) })))
	// The end of the connections before may have come within a probe.
	eventually(t, func() (any, bool) { return answers.Load(), answers.Load() > 0 })
	waitFor(t, p, seen{up, 200})
	last := answers.Load() + 5
	eventually(t, func() (any, bool) {
		if got := p.all()[0]; got != (seen{up, 200}) {
			t.Fatalf("it goes away between probes: %v", got)
		}
		return answers.Load(), answers.Load() >= last
	})
}

// However a reply is cut into pieces, it is the same reply.
func TestReplyInPieces(t *testing.T) {
	for _, c := range redisCases {
		want := readReplies([]byte(c.reply), len(c.reply))
		for size := 1; size < len(c.reply); size++ {
			if got := readReplies([]byte(c.reply), size); got != want {
				t.Errorf("%s in pieces of %d: %s, want %s", c.name, size, got, want)
			}
		}
	}
}

// readReplies tells what comes of bytes that come in pieces.
func readReplies(b []byte, size int) string {
	var out strings.Builder
	var r replyReader
	for len(b) > 0 {
		piece := b[:min(size, len(b))]
		b = b[len(piece):]
		for len(piece) > 0 {
			n, complete, err := r.consume(piece)
			if err != nil {
				return out.String() + " " + err.Error()
			}
			piece = piece[n:]
			if complete {
				fmt.Fprint(&out, r.reply)
			}
		}
	}
	return out.String()
}

func FuzzReply(f *testing.F) {
	for _, c := range redisCases {
		f.Add([]byte(c.reply), 1)
	}
	f.Add([]byte(":9223372036854775808\r\n"), 7)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		whole, pieces := readReplies(b, len(b)+1), readReplies(b, max(1, size))
		if whole != pieces {
			t.Errorf("%s, in pieces %s", whole, pieces)
		}
	})
}

func FuzzGRPCAnswer(f *testing.F) {
	f.Add([]byte{}, 1, "0")
	f.Add(serving, 3, "0")
	f.Add(append(framed(0, nil), serving...), 1, "12")
	f.Add(framed(1, serving), 2, "x")
	f.Add([]byte("\x00\xff\xff\xff\xffx"), 2, "0")
	f.Fuzz(func(t *testing.T, b []byte, size int, status string) {
		var a grpcAnswer
		for rest := b; len(rest) > 0; {
			piece := rest[:min(len(rest), max(1, size))]
			rest = rest[len(piece):]
			o, certain := a.add(event{kind: data, data: piece})
			if certain {
				if o != Failed {
					t.Errorf("%v amid the answer", o)
				}
				return
			}
		}
		e := event{kind: trailer, ends: true, header: map[string][]string{"Grpc-Status": {status}}}
		if o, certain := a.add(e); !certain || o == Passed && !bytes.Contains(b, []byte{8, 1}) && !bytes.Contains(b, []byte{8, 0x81}) {
			t.Errorf("%v, %t", o, certain)
		}
	})
}

// oneWay is a connection whose peer has said all there is to hear.
type oneWay struct {
	net.Conn
	from io.Reader
}

func (c *oneWay) Read(b []byte) (int, error)  { return c.from.Read(b) }
func (c *oneWay) Write(b []byte) (int, error) { return len(b), nil }

func FuzzHTTP2(f *testing.F) {
	var b bytes.Buffer
	p := &peer2{Framer: http2.NewFramer(&b, nil)}
	p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	p.WritePing(false, [8]byte{})
	p.WriteWindowUpdate(1, 100)
	p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0x88})
	p.WriteDataPadded(1, false, []byte("hi"), []byte{0})
	p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndStream, 1, nil)
	p.WriteContinuation(1, true, nil)
	p.WriteGoAway(1, http2.ErrCodeNo, nil)
	f.Add(b.Bytes())
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newHTTP2Conn(&oneWay{from: bytes.NewReader(b)})
		if err := c.request([]byte{0x82}, []byte("payload"), false); err != nil {
			t.Fatal(err)
		}
		for {
			e, err := c.next()
			if err != nil {
				break
			}
			if e.kind == header && (e.status < 100 || e.status > 999) {
				t.Errorf("status %d", e.status)
			}
			if e.ends {
				c.idle()
				break
			}
		}
		if c.consumed > len(c.input) || cap(c.input) > 8*maxFrame {
			t.Errorf("%d of %d bytes taken, room for %d", c.consumed, len(c.input), cap(c.input))
		}
	})
}
