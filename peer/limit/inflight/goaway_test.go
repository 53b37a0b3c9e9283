package inflight_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/peer/limit/inflight"
)

// goingServer answers two streams, goes away without the second, and begins a message of a size on
// the first. It ends when the client closes the connection.
func goingServer(listener net.Listener, size int) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	f := http2.NewFramer(conn, conn)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
	head := bytes.Clone(block.Bytes())
	if err := f.WriteSettings(); err != nil {
		return err
	}
	for streams := 0; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
			_ = f.WriteSettingsAck()
		}
		if frame.Header().Type != http2.FrameHeaders {
			continue
		}
		if streams++; streams < 2 {
			continue
		}
		for _, id := range []uint32{1, 3} {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndHeaders: true})
		}
		_ = f.WriteGoAway(1, http2.ErrCodeNo, []byte("an upgrade"))
		if err := f.WriteData(1, false, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)), "the first bytes"...)); err != nil {
			return err
		}
	}
}

// TestAServerThatGoesAway ends the streams that it does not serve any more. Of the others, Next
// returns sizes as before.
func TestAServerThatGoesAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = goingServer(listener, 1<<20) }()
	conn, err := grpc.NewClient(listener.Addr().String(), inflight.DialOptions(insecure.NewCredentials())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); _ = listener.Close(); <-done })
	first, second := open(t, t.Context(), conn), open(t, t.Context(), conn)
	served, ended := inflight.Follow(first), inflight.Follow(second)
	if size, err := ended.Next(t.Context()); size != 0 || err != nil {
		t.Errorf("size %d, %v, of a stream that the server does not serve", size, err)
	}
	if size, err := served.Next(t.Context()); size != 1<<20+5 || err != nil {
		t.Errorf("size %d, %v, of a stream that goes on", size, err)
	}
}
