//go:build !race || soak

package coordinator

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/health"
	"hdsd/machine"
)

// TestReturningZoneCostsFewSpecifiers covers checkers that join and take work from many others. Changes
// within a quarter of a report interval cost one specifier.
func TestReturningZoneCostsFewSpecifiers(t *testing.T) {
	l := newLab(t)
	var addresses []string
	for i := range 400 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:80", i/250, 1+i%250))
	}
	l.serve(web("web", addresses...))
	var zone []string
	for i := range 10 {
		for _, z := range []string{"a", "b", "c"} {
			l.join(fmt.Sprintf("checker-%d%s", i, z))
		}
		zone = append(zone, fmt.Sprintf("checker-%dd", i))
	}
	l.join(zone...)
	l.pass(settle + report)
	for _, id := range zone {
		l.lose(id)
	}
	l.pass(6*grace + 2*report) // two are given up in each
	before := maps.Clone(l.sent)
	moved := 0
	for _, id := range zone {
		l.join(id)
		l.now = l.now.Add(time.Millisecond)
		l.step(machine.Tick{})
	}
	l.replan()
	if len(l.laggingCheckers()) == 0 {
		t.Error("nobody waits for what is gathered")
	}
	l.pass(report)
	if who := l.laggingCheckers(); len(who) > 0 {
		t.Errorf("%v still wait", who)
	}
	for id, sent := range l.sent {
		if l.checkers[id].Locality.Zone == "d" {
			continue
		}
		if n := sent - before[id]; n > 2 {
			t.Errorf("%s was sent %d specifiers", id, n)
		} else if n > 0 {
			moved++
		}
	}
	if moved < 15 {
		t.Errorf("only %d of 30 checkers gave up work", moved)
	}
	for id := range l.checkers {
		if stored := l.plan[id]; len(stored) == 0 || len(stored) != l.load(id) {
			t.Errorf("of %s, %d endpoints are stored and %d planned", id, len(stored), l.load(id))
		}
	}
}

// TestDataPlanesDoNotWaitForCheckers covers a change of the sources: hdsd publishes it at once, while it
// gathers the specifiers.
func TestDataPlanesDoNotWaitForCheckers(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	sent := l.sent["ca"]
	l.intake.take(&sourceSet{Source: "local", Clusters: []*sourceCluster{saying(web("web", address2, address1), corev3.HealthStatus_DRAINING)}})
	l.wantPublished("web", address2, health.Draining)
	l.wantPublished("web", address1, health.Healthy)
	if l.sent["ca"] != sent {
		t.Error("a checker was sent a specifier before it was gathered")
	}
}
