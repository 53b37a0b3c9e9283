//go:build !race || soak

package coordinator

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/machine"
)

// TestPauseSilencesNoChecker covers a pause of the process or its host: hdsd handles the events from the
// pause before it finds a checker late.
func TestPauseSilencesNoChecker(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	var log bytes.Buffer
	l.core.eventLog.log = zerolog.New(&log)
	l.lose("c0a")
	l.now = l.now.Add(time.Hour)
	for range 10 {
		l.step(machine.Tick{})
		l.now = l.now.Add(50 * time.Millisecond)
	}
	if l.figures().Silent > 0 {
		t.Error("checkers are called silent that nobody has listened to")
	}
	if n := strings.Count(log.String(), `"event":"paused","lasted":3600`); n != 1 {
		t.Errorf("the log says %d times that hdsd was paused for an hour:\n%s", n, log.String())
	}
	l.join("c0a")
	l.pass(30 * time.Second)
	if l.figures().Silent > 0 || l.lostCount() > 0 || l.load("c0a") == 0 {
		t.Errorf("%d are silent, %d absent, and c0a has %d endpoints", l.figures().Silent, l.lostCount(), l.load("c0a"))
	}
}

// TestBusyHdsdFindsLateCheckers covers rare ticks.
func TestBusyHdsdFindsLateCheckers(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	l.lose("c0a")
	for range 10 {
		l.now = l.now.Add(3 * time.Second)
		l.step(machine.Tick{})
		l.now = l.now.Add(report)
		l.step(machine.Tick{})
	}
	if l.lostCount() > 0 {
		t.Error("a seat is kept for ever")
	}
}
