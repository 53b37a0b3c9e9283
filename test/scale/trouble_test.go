package scale

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// lasting is how long a fault lasts.
func lasting() time.Duration { return time.Duration(crowdSize(3, 30)) * time.Second }

// without has checkers be away for a time.
func (s *soak) without(some []*checker) {
	for _, k := range some {
		k.stop()
	}
	time.Sleep(lasting()) // the fault itself
	for _, k := range some {
		k.start()
	}
}

// steady is how soon after a fault all that is published must be true again.
const steady = 10 * time.Second

// TestTrouble has one thing go wrong after the other while endpoints fail and recover.
// Nothing false goes out, the log says what happened, and all that is published is true
// again soon. HDSD_SCALE=full has each fault last for 30 s, and holds hdsd to 10 s.
func TestTrouble(t *testing.T) {
	t.Parallel()
	s := newSoak(t, 1)
	s.judge.settle(patience)
	for i, fault := range []struct {
		name    string
		happens func()
		says    string // in the log
	}{
		{"half of the checkers are lost", func() { s.without(s.checkers[:len(s.checkers)/2]) }, `"event":"checker_lost"`},
		{"a zone is lost", func() { s.without(s.inZone(1)) }, `"event":"checker_lost"`},
		{"all checkers are lost", func() { s.interrupted(func() { s.without(s.checkers) }) }, `"event":"checker_lost"`},
		{"hdsd stands still", func() {
			s.interrupted(func() {
				s.Signal(syscall.SIGSTOP)
				time.Sleep(lasting()) // the fault itself
				s.Signal(syscall.SIGCONT)
			})
		}, `"event":"paused"`},
		{"40 reloads a second", func() {
			for end := time.Now().Add(lasting()); time.Now().Before(end); {
				s.Signal(syscall.SIGHUP)
				time.Sleep(time.Second / 40) // the fault itself
			}
		}, `"event":"reloaded"`},
		{"reports as fast as hdsd takes them", func() { s.flood(nil) }, ""},
		{"50 subscribers that never read", func() { s.deaf(nil) }, ""},
	} {
		s.until("all checkers to be back", func() bool { return s.Metric("hdsd_checkers_connected") == float64(len(s.checkers)) })
		said := len(s.Logs())
		for n := range 5 {
			s.judge.flip(5*i + n)
		}
		fault.happens()
		began := time.Now()
		s.judge.settle(patience)
		took := time.Since(began)
		t.Logf("%s: steady %v after its end, load %.1f", fault.name, took.Round(10*time.Millisecond), load(t))
		if full() && took > steady {
			t.Errorf("%s: steady only %v after its end", fault.name, took)
		}
		// What is published can be true before hdsd has said what happened: reports come before ticks.
		s.until("the log to say: "+fault.name, func() bool { return strings.Contains(s.Logs()[said:], fault.says) })
	}
	s.checkHistory()
}
