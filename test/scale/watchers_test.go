package scale

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// audienceOf is many connections that watch over HTTP/1.1.
type audienceOf struct {
	stop    atomic.Bool
	running sync.WaitGroup
	all     []net.Conn

	synced, refused, ended atomic.Int64
	last                   atomic.Int64 // when the latest one was synced, in ns
}

// join connects so many watchers, until leave. Those that are deaf read nothing.
func join(s *simulation, n int, deaf bool) *audienceOf {
	a := &audienceOf{}
	for range n {
		one, err := net.Dial("tcp", s.HTTP)
		if err == nil {
			a.all = append(a.all, one)
			_, err = io.WriteString(one, "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if !deaf {
			a.running.Go(func() { a.read(one) })
		}
	}
	return a
}

func (a *audienceOf) leave() {
	a.stop.Store(true)
	for _, one := range a.all {
		_ = one.Close()
	}
	a.running.Wait()
}

// read reads all events of one watcher.
func (a *audienceOf) read(one net.Conn) {
	in := bufio.NewReaderSize(one, 4<<10)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			if !a.stop.Load() {
				a.ended.Add(1)
			}
			return
		case bytes.HasPrefix(line, []byte("HTTP/1.1 429")):
			a.refused.Add(1)
			_ = one.Close()
			return
		case bytes.HasPrefix(line, []byte("event: synced")):
			a.synced.Add(1)
			a.last.Store(time.Now().UnixNano())
		}
	}
}

// TestManyWatchersDelayNobody: a crowd watches everything, and each of them is shown
// everything. HDSD_SCALE=full has 5,000 of them. Then the worst detection may take 2 s.
func TestManyWatchersDelayNobody(t *testing.T) {
	s, d := attacked(t)
	n, span := crowdSize(100, 5000), time.Duration(crowdSize(2, 40))*time.Second
	undisturbed := d.during(t, span/2, 100*time.Millisecond)
	rest := usageOf(t, s.PID()).resident
	crowded := make(chan delays)
	go func() { crowded <- d.during(t, span, 100*time.Millisecond) }()
	began := time.Now()
	a := join(s, n, false)
	t.Logf("%d watchers connected after %v", n, time.Since(began))
	during := <-crowded
	s.until("every watcher to be synced", func() bool { return a.synced.Load() == int64(n) })
	t.Logf("the last one was synced after %v, %d ended; RSS %d MiB more than at rest", time.Unix(0, a.last.Load()).Sub(began), a.ended.Load(), (usageOf(t, s.PID()).peak-rest)>>20)
	if a.ended.Load() > 0 {
		t.Errorf("%d watchers were ended", a.ended.Load())
	}
	a.leave()
	t.Logf("undisturbed: %v", undisturbed)
	t.Logf("crowded:     %v; load %.1f", during, load(t))
	if full() && during.at(1) > 2*time.Second {
		t.Errorf("the worst detection took %v", during.at(1))
	}
}

// TestManyDeafWatchersEnd: a crowd watches and never reads, while endpoints flip. All of
// them end within 15 s, and delay nobody. HDSD_SCALE=full has 9,000 of them.
func TestManyDeafWatchersEnd(t *testing.T) {
	const patience = 15 * time.Second
	s, d := attacked(t)
	n := crowdSize(100, 9000)
	undisturbed := d.during(t, time.Duration(crowdSize(1, 20))*time.Second, 100*time.Millisecond)
	a := join(s, n, true)
	defer a.leave()
	connected := time.Now()
	var crowded delays
	for s.Metric("hdsd_watch_subscribers") > 0 {
		if crowded = append(crowded, d.during(t, time.Second, 100*time.Millisecond)...); time.Since(connected) > 4*patience {
			t.Fatalf("%.0f watchers are left after %v", s.Metric("hdsd_watch_subscribers"), time.Since(connected))
		}
	}
	took := time.Since(connected)
	t.Logf("all %.0f that were let in had been ended %v after they connected", s.Metric("hdsd_watches_deaf_total"), took)
	if full() && took > patience {
		t.Errorf("they were ended after %v", took)
	}
	if got := s.Metric("hdsd_watches_deaf_total"); got == 0 {
		t.Error("none was counted as deaf")
	}
	slices.Sort(crowded)
	s.compareDelays(undisturbed, crowded)
}
