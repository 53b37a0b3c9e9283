//go:build !race || soak

package coordinator

import (
	"testing"
	"time"

	"hdsd/health"
)

// TestAlternatingChecksHideNoOutage covers a source whose health checks alternate before checkers confirm
// that an endpoint is down. This delays the verdict, and does not prevent it.
func TestAlternatingChecksHideNoOutage(t *testing.T) {
	forms := []string{"/a", "/b"}
	l := settled(t, withPath("web", forms[0], one, two))
	change := 0
	for range 10 { // both forms are known to harm nobody
		change++
		l.say(withPath("web", forms[change%2], one, two))
		l.pass(12 * time.Second)
	}
	l.wantPublished("web", one, health.Healthy)
	for outage := time.Duration(0); l.published("web", one) == health.Healthy; outage += 3 * time.Second {
		if outage > 30*time.Second {
			t.Fatalf("after %s of an outage: %s", outage, l.core.Aggregator.Verdict(l.idOf(keyOf("web", one))).Reason)
		}
		change++
		l.say(withPath("web", forms[change%2], one, two))
		l.pass(time.Second)
		l.truth[one] = health.Unhealthy
		l.pass(2 * time.Second)
	}
	l.wantPublished("web", one, health.Unhealthy)
	l.wantPublished("web", two, health.Healthy)
}
