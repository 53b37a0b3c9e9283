package inflight_test

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"hdsd/peer/limit/inflight"
)

// stand lets this process, server and clients, stand still.
func (s *site) stand(seconds string) {
	s.Helper()
	if out, err := exec.CommandContext(s.Context(), "sh", "-c", "kill -STOP $PPID; sleep "+seconds+"; kill -CONT $PPID").CombinedOutput(); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}

// nobodyWasLate checks that hdsd has ended no connection.
func (s *site) nobodyWasLate() {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) > 0 {
		s.Errorf("late were %v", s.late)
	}
}

// TestAQuestionIsNotLateWhileHdsdStandsStill covers a client that ends its question afterwards.
func TestAQuestionIsNotLateWhileHdsdStandsStill(t *testing.T) {
	s := newSite(t, total)
	s.Wide, s.Arrival = nil, 2*time.Second
	stream := s.asks(10_000)
	s.taken(10_000 + inflight.MessageBytes)
	s.stand("3")
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.receive(stream, "asked")
	s.nobodyWasLate()
}

// TestAMessageIsNotLateWhileHdsdStandsStill, also if its time would be over a little later.
func TestAMessageIsNotLateWhileHdsdStandsStill(t *testing.T) {
	for _, seconds := range []string{"1.9", "2.5"} {
		s := newSite(t, total)
		s.Arrival = 2 * time.Second
		r := s.raw()
		r.announce(1, 500_000)
		s.taken(500_000 + inflight.MessageBytes)
		s.stand(seconds)
		for rest := make([]byte, 500_000-2); len(rest) > 0; rest = rest[min(len(rest), 10_000):] {
			if err := r.to.WriteData(1, false, rest[:min(len(rest), 10_000)]); err != nil {
				t.Fatal(err)
			}
		}
		s.let("raw", 1)
		r.until("its answer", func(f http2.Frame) bool { return f.Header().Type == http2.FrameData })
		s.nobodyWasLate()
	}
}
