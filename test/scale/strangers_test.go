package scale

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// strangers are workers that come as checkers under ever new ids, and say of every
// endpoint that it is down.
type strangers struct {
	stop    atomic.Bool
	running sync.WaitGroup
	came    atomic.Int64
}

// invaded starts so many workers, each of which stays for a time.
func invaded(s *simulation, workers int, stay time.Duration) *strangers {
	lies := newWorld(10, 60)
	for i := range lies.failing {
		lies.failing[i].Store(true)
	}
	all := &strangers{}
	for i := range workers {
		all.running.Go(func() {
			for !all.stop.Load() {
				k := &checker{
					id: fmt.Sprintf("stranger-%d", all.came.Add(1)), zone: string(rune('a' + i%3)), server: s.GRPC, world: lies,
					interval: 100 * time.Millisecond, failed: func(err error) { s.t.Error(err) },
				}
				k.start()
				for end := time.Now().Add(stay); time.Now().Before(end) && !all.stop.Load(); {
					time.Sleep(min(stay, 100*time.Millisecond))
				}
				k.stop()
			}
		})
	}
	return all
}

func (all *strangers) leave() {
	all.stop.Store(true)
	all.running.Wait()
}

// wrong counts the endpoints that the detector was told something else of than is true.
func (d *detector) wrong() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.world.addresses {
		if d.world.failing[i].Load() != (d.health[i] == corev3.HealthStatus_UNHEALTHY) {
			n++
		}
	}
	return n
}

// TestStrangersDelayNobody and take nothing down: some stay, others come and go as fast
// as they can. HDSD_SCALE=full has 50 and 40 of them for half a minute.
func TestStrangersDelayNobody(t *testing.T) {
	s, d := attacked(t)
	if os.Getenv("HDSD_BINARY") == "" { // an older one knows nobody on probation
		s.until("the fleet to be established", func() bool { return strings.Contains(s.Logs(), "checkers_established") })
	}
	span := time.Duration(crowdSize(2, 25)) * time.Second
	undisturbed := d.during(t, span, 100*time.Millisecond)
	for name, stay := range map[string]time.Duration{"that stay": time.Minute, "that come and go": 10 * time.Millisecond} {
		all := invaded(s, crowdSize(10, 45), stay)
		crowded := d.during(t, span, 100*time.Millisecond)
		if n := d.wrong(); n > 0 {
			t.Errorf("strangers %s: data planes are wrong about %d endpoints", name, n)
		}
		all.leave()
		t.Logf("strangers %s: %d", name, all.came.Load())
		s.compareDelays(undisturbed, crowded)
	}
}
