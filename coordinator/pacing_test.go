//go:build !race || soak

package coordinator

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"hdsd/health"
	"hdsd/machine"
)

// TestColludersFlipWithinLimits covers three of five checkers that change their votes on all endpoints every
// 100 ms, for 10 minutes.
func TestColludersFlipWithinLimits(t *testing.T) {
	l := newLab(t)
	l.core.Rulings.Spare = 0
	var log bytes.Buffer
	l.core.eventLog.log = zerolog.New(&log)
	l.rules.Assignment.Redundancy = 5
	var addresses []string
	for i := range 6 {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:80", i+1))
	}
	l.serve(web("web", addresses...))
	l.join("1a", "2b", "3c", "4a", "5b")
	l.pass(settle + 10*time.Second)
	began, before := l.now, len(l.transitions)
	published, last := map[string]int{}, map[string]health.Status{}
	for i := range 6000 {
		said := map[string]health.Status{}
		for _, address := range addresses {
			last[address] = l.published("web", address)
			said[address] = []health.Status{health.Unhealthy, health.Healthy}[i%2]
		}
		l.now = l.now.Add(100 * time.Millisecond)
		for _, id := range []string{"1a", "2b", "3c", "4a", "5b"} {
			if id < "4" {
				l.checkers[id].blind = said
			}
			l.report(id)
			l.step(machine.Tick{})
		}
		for _, address := range addresses {
			if l.published("web", address) != last[address] {
				published[address]++
			}
		}
	}
	recorded := map[string]int{}
	for _, change := range l.transitions[before:] {
		recorded[change.Endpoint.Address]++
	}
	most := 10 + int(l.now.Sub(began)/(5*time.Second))
	for _, address := range addresses {
		t.Logf("%s: %d changes recorded, %d published", address, recorded[address], published[address])
		if recorded[address] > most || published[address] > most || recorded[address] < most/4 {
			t.Errorf("%s: %d changes recorded, %d published, %d may be", address, recorded[address], published[address], most)
		}
	}
	left := testutil.ToFloat64(l.core.metrics.rulings.leftOut)
	if left < 6000 {
		t.Errorf("%g changes were left out", left)
	}
	if reason := l.verdict("web", addresses[0]).Reason; !strings.Contains(reason, "it changes too often") {
		t.Errorf("the reason is %q", reason)
	}
	if events := strings.Count(log.String(), "changes_left_out"); events < 30 || events > 61 {
		t.Errorf("%d events in 10 minutes: %.300s", events, log.String())
	}
	for _, id := range []string{"1a", "2b", "3c"} {
		l.checkers[id].blind = nil
	}
	l.pass(time.Minute)
	for _, address := range addresses {
		l.wantPublished("web", address, health.Healthy)
	}
	if paced := testutil.ToFloat64(l.core.metrics.rulings.paced); paced != 0 {
		t.Errorf("a minute later %g endpoints change too often", paced)
	}
}
