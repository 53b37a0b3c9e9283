package hostile

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/test/fleet"
)

// halfOpen starts thousands of peers that begin something and then say nothing.
func (s *site) halfOpen(t *testing.T) {
	var mute []net.Conn
	for range 1000 {
		for _, address := range []string{s.GRPC, s.HTTP} {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			mute = append(mute, c)
		}
	}
	var checkers, subscribers []grpc.ClientStream
	for range 10 {
		on := s.dial(t)
		defer on.Close()
		for range 200 {
			checkers = append(checkers, stream(t, on, hdsMethod))
			subscribers = append(subscribers, stream(t, on, adsMethod))
		}
	}
	s.alive(t)
	f, err := s.ask()
	t.Logf("with %d connections and %d streams there are %.0f goroutines, %v", len(mute), 2*len(checkers), f.goroutines, err)
	var all sync.WaitGroup
	all.Go(func() { s.garbage(t) }) // it waits for the same bounds
	for _, c := range mute {
		all.Go(func() {
			defer c.Close()
			_ = c.SetReadDeadline(time.Now().Add(fleet.Patience)) // a TCP connection has deadlines
			if _, err := io.Copy(io.Discard, c); err != nil {
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // as it came
					t.Errorf("a connection that says nothing is kept: %v", err)
				}
			}
		})
	}
	for _, c := range checkers {
		all.Go(func() {
			if err := end(c); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a stream without a first message ends with %v", err)
			}
		})
	}
	all.Wait()
	if len(subscribers) == 0 { // they wait longer, which the tests of eds cover
		t.Error("no subscriber")
	}
}
