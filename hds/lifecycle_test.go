package hds_test

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"hdsd/hds"
	"hdsd/health"
)

func TestCloseEndsAllStreams(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		named := f.connect("a", "10.1.0.1", "z1")
		nameless := f.open(f.dial("10.1.0.1"))
		same(t, "calls", f.sink.take(), "connected a")
		f.server.Close()
		// Close has waited for the stream's last call; no need to wait here.
		same(t, "calls", f.sink.calls, "ended a", "disconnected a")
		named.fails(codes.Unavailable, "shutting down")
		nameless.fails(codes.Unavailable, "shutting down")
		f.open(f.dial("10.1.0.1")).fails(codes.Unavailable, "shutting down")
		f.server.Close()
	})
}

func TestCloseWaitsForTheSink(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		hold := make(chan struct{})
		f.sink.onConnected = func(health.Checker) { <-hold }
		f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		var closed atomic.Bool
		go func() {
			f.server.Close()
			closed.Store(true)
		}()
		same(t, "calls", f.sink.take())
		if closed.Load() {
			t.Error("closed while the sink was being called")
		}
		close(hold)
		same(t, "calls", f.sink.take(), "ended a", "disconnected a")
		if !closed.Load() {
			t.Error("not closed")
		}
	})
}

func TestPeerThatDoesNotReadHoldsUpNobody(t *testing.T) {
	bubble(t, hds.Options{WriteTimeout: 10 * time.Second}, func(f *fixture) {
		narrow := f.dial("10.1.0.1", grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
		stuck := f.open(narrow)
		stuck.send(hello(&corev3.Node{Id: "a"}))
		reading := f.connect("b", "10.1.0.2", "z1")
		sent := reading.specifiers()
		f.sink.take()

		var many []checked
		for i := range 20000 {
			many = append(many, checked{health.EndpointID(i), fmt.Sprintf("web/a/10.0.%d.%d:80", i>>8, i&255)})
		}
		for _, id := range []string{"a", "b"} {
			f.server.Assign(id, assignment(many...))
		}
		if n := len(sent()); n != 1 {
			t.Errorf("the one that reads got %d specifiers", n)
		}
		for i := range 10 { // the latest wins, none of them waits
			f.server.Assign("a", assignment(many[i:]...))
		}
		same(t, "calls", f.sink.take())
		time.Sleep(10 * time.Second)
		same(t, "calls", f.sink.take(), "disconnected a")
		if n := f.counted("hdsd_hds_stuck_streams_total"); n != 1 {
			t.Errorf("%v stuck streams are counted", n)
		}
		stuck.fails(codes.DeadlineExceeded, "not read within 10s")
	})
}

// vanishing is a connection whose peer can vanish: from then on nothing comes
// in, and what is written goes nowhere.
type vanishing struct {
	net.Conn
	gone <-chan struct{}
	over chan struct{}
	once atomic.Bool
}

func (v *vanishing) Read(b []byte) (int, error) {
	n, err := v.Conn.Read(b)
	select {
	case <-v.gone:
		<-v.over
		return 0, io.EOF
	default:
		return n, err
	}
}

func (v *vanishing) Write(b []byte) (int, error) {
	select {
	case <-v.gone:
		return len(b), nil
	default:
		return v.Conn.Write(b)
	}
}

func (v *vanishing) Close() error {
	if v.once.CompareAndSwap(false, true) {
		close(v.over)
	}
	return v.Conn.Close()
}

func TestDeadPeerIsFoundInSeconds(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		gone := make(chan struct{})
		f.listen("10.1.0.1", func(c net.Conn) net.Conn {
			return &vanishing{Conn: c, gone: gone, over: make(chan struct{})}
		})
		f.connect("a", "10.1.0.1", "z1")
		time.Sleep(time.Minute)
		same(t, "calls of a peer that is alive but silent", f.sink.take(), "connected a")
		close(gone)
		time.Sleep(30 * time.Second)
		same(t, "calls", f.sink.take(), "disconnected a")
	})
}

// late is a connection whose peer is busy for a while: what it says comes after that.
type late struct {
	net.Conn
	busy, done <-chan struct{}
}

func (l *late) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	select {
	case <-l.busy:
		<-l.done
	default:
	}
	return n, err
}

func TestABusyPeerStaysConnected(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		busy, done := make(chan struct{}), make(chan struct{})
		f.listen("10.1.0.1", func(c net.Conn) net.Conn { return &late{Conn: c, busy: busy, done: done} })
		c := f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		close(busy)
		time.Sleep(20 * time.Second)
		close(done)
		time.Sleep(time.Minute)
		same(t, "calls of a peer that was busy", f.sink.take())
		c.cancel()
		same(t, "calls", f.sink.take(), "disconnected a")
	})
}

func TestAnHourOfReports(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		c := assigned(f, checked{1, web1}, checked{2, web2})
		f.sink.onReported = func(string) { f.server.State("a") }
		for i := range 3500 {
			status := up
			if i%100 == 99 {
				status = down
			}
			c.send(report(said{web1, up, 200}, said{web2, status, 0}))
			time.Sleep(time.Second)
		}
		calls := f.sink.take()
		if len(calls) != 3500 {
			t.Fatalf("%d calls", len(calls))
		}
		same(t, "first calls", calls[:2], "reported a 1=HEALTHY/200 2=HEALTHY", "reported a")
		same(t, "a failure", calls[98:102], "reported a", "reported a 2=UNHEALTHY", "reported a 2=HEALTHY", "reported a")
	})
}
