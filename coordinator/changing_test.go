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
	l := newSettledLab(t, withPath("web", forms[0], address1, address2))
	change := 0
	for range 10 { // both forms are known to harm nobody
		change++
		l.setClusters(withPath("web", forms[change%2], address1, address2))
		l.pass(12 * time.Second)
	}
	l.wantPublished("web", address1, health.Healthy)
	for outage := time.Duration(0); l.published("web", address1) == health.Healthy; outage += 3 * time.Second {
		if outage > 30*time.Second {
			t.Fatalf("after %s of an outage: %s", outage, l.core.Aggregator.Verdict(l.idOf(keyOf("web", address1))).Reason)
		}
		change++
		l.setClusters(withPath("web", forms[change%2], address1, address2))
		l.pass(time.Second)
		l.truth[address1] = health.Unhealthy
		l.pass(2 * time.Second)
	}
	l.wantPublished("web", address1, health.Unhealthy)
	l.wantPublished("web", address2, health.Healthy)
}
