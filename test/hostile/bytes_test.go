package hostile

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"hdsd/test/fleet"
)

// talk writes, and reads until the other side closes, as it must.
func talk(t *testing.T, address string, write func(net.Conn) error) (answer []byte) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(fleet.Patience)) // a TCP connection has deadlines
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { _ = write(c) }) // it may be cut off
	answer, err = io.ReadAll(io.LimitReader(c, 1<<20))
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // as it came
		t.Errorf("%s keeps the connection", address)
	}
	return answer
}

func send(text []byte) func(net.Conn) error {
	return func(c net.Conn) error { _, err := c.Write(text); return err }
}

func garbage(seed uint64, size int) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

func (s *site) garbage(t *testing.T) {
	var all sync.WaitGroup
	for i := range 20 {
		for _, address := range []string{s.GRPC, s.HTTP} {
			for _, text := range [][]byte{
				garbage(uint64(i), 1+i*1000),
				append([]byte(http2.ClientPreface), garbage(uint64(i), 1+i*1000)...),
				append([]byte("POST /v1/endpoints HTTP/1.1\r\nHost: x\r\n"), append(garbage(uint64(i), 1000), "\r\n\r\n"...)...),
				bytes.Repeat([]byte{0}, 1000*i+1),
			} {
				all.Go(func() { talk(t, address, send(text)) })
			}
		}
	}
	all.Wait()
}

func (s *site) wrongProtocol(t *testing.T) {
	for _, address := range []string{s.GRPC, s.HTTP} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(fleet.Patience)) // a TCP connection has deadlines
		if err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
			t.Errorf("%s speaks TLS without being told to", address)
		}
		c.Close()
	}
	if answer := talk(t, s.GRPC, send([]byte("GET /v1/endpoints HTTP/1.1\r\nHost: x\r\n\r\n"))); bytes.Contains(answer, []byte("200 OK")) {
		t.Errorf("HTTP/1 on the gRPC address: %q", answer)
	}
	if answer := talk(t, s.HTTP, send([]byte(http2.ClientPreface))); !bytes.Contains(answer, []byte("HTTP/1.1 ")) {
		t.Errorf("HTTP/2 on the HTTP address: %q", answer)
	}
	talk(t, s.HTTP, send(fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", bytes.Repeat([]byte("a"), 1<<20))))
}

// floods are attacks over HTTP/2 that cost a client almost nothing.
func (s *site) floods(t *testing.T) {
	const times = 5_000
	flood := func(frame func(f *http2.Framer, i uint32) error) func(net.Conn) error {
		return func(c net.Conn) error {
			if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
				return err
			}
			f := http2.NewFramer(c, nil)
			if err := f.WriteSettings(); err != nil {
				return err
			}
			for i := range uint32(times) {
				if err := frame(f, i); err != nil {
					return err
				}
			}
			return c.(*net.TCPConn).CloseWrite()
		}
	}
	headers := requestHeaders("/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources")
	open := func(f *http2.Framer, i uint32) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: headers, EndHeaders: true})
	}
	for name, frame := range map[string]func(*http2.Framer, uint32) error{
		"pings": func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{}) },
		"settings": func(f *http2.Framer, _ uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 15})
		},
		"window updates": func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) },
		"streams":        open,
		"rapid resets": func(f *http2.Framer, i uint32) error {
			if err := open(f, i); err != nil {
				return err
			}
			return f.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		},
		"endless headers": func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers})
			}
			return f.WriteContinuation(1, false, bytes.Repeat([]byte{0x00, 0x01, 'x', 0x01, 'y'}, 100))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { talk(t, s.GRPC, flood(frame)) })
			}
			all.Wait()
		})
	}
}

// requestHeaders encodes the headers of a gRPC call.
func requestHeaders(path string) []byte {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	encoder.SetMaxDynamicTableSize(0) // so that the same bytes can be sent repeatedly
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}) // a Buffer cannot fail
	}
	return out.Bytes()
}
