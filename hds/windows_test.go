package hds_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"hdsd/hds"
)

// written is a connection that keeps what the server writes.
type written struct {
	net.Conn
	mu   sync.Mutex
	data bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data.Write(b)
	return w.Conn.Write(b)
}

// frames counts what was written, by kind; ACKs of settings and pings do not count.
func (w *written) frames(t *testing.T) map[http2.FrameType]int {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	counts, framer := map[http2.FrameType]int{}, http2.NewFramer(io.Discard, bytes.NewReader(w.data.Bytes()))
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return counts
		}
		if h := f.Header(); h.Flags&http2.FlagPingAck == 0 || h.Type != http2.FramePing && h.Type != http2.FrameSettings {
			counts[h.Type]++
		}
	}
}

// TestReportsAreNotAnswered: grpc writes nothing because a report has come.
func TestReportsAreNotAnswered(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		var server *written
		f.listen("10.1.0.1", func(c net.Conn) net.Conn {
			server = &written{Conn: c}
			return server
		})
		c := f.open(f.dial("10.1.0.1", grpc.WithStaticStreamWindowSize(1<<20), grpc.WithStaticConnWindowSize(1<<20)))
		c.send(hello(&corev3.Node{Id: "a", UserAgentName: "envoy"}))
		same(t, "calls", f.sink.take(), "connected a")
		f.server.Assign("a", assignment(checked{1, "web/a/10.0.0.1:80"}))
		c.next()
		synctest.Wait()
		before := server.frames(t)
		if before[http2.FrameData] != 1 {
			t.Fatalf("one specifier, and these frames: %v", before)
		}
		for range 100 {
			c.send(report(said{name: "web/a/10.0.0.1:80", status: corev3.HealthStatus_HEALTHY}))
			synctest.Wait()
		}
		for kind, n := range server.frames(t) {
			if n != before[kind] {
				t.Errorf("%d frames of kind %v because of 100 reports", n-before[kind], kind)
			}
		}
	})
}
