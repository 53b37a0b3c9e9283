//go:build !race || soak

package coordinator

import (
	"testing"
	"time"

	"hdsd/health"
	"hdsd/log"
)

// TestHeldHealth covers the time from the last believed vote to the next one, while the health stays. An
// override ends the hold.
func TestHeldHealth(t *testing.T) {
	l := newLab(t)
	const address = "10.0.0.1:80"
	l.serve(web("web", address))
	if e := l.queryEndpoint("web", address); !e.HeldSince.IsZero() {
		t.Errorf("held before it was ever checked, since %s", e.HeldSince)
	}
	l.join("c0a", "c1b")
	l.pass(settle + 10*time.Second)
	if e := l.queryEndpoint("web", address); !e.HeldSince.IsZero() || e.Verdict.Status != health.Healthy {
		t.Fatalf("held since %s with two checkers, %s", e.HeldSince, e.Verdict.Status)
	}
	l.lose("c0a")
	l.pass(20 * time.Second)
	if e := l.queryEndpoint("web", address); !e.HeldSince.IsZero() {
		t.Errorf("held since %s while one checker is left", e.HeldSince)
	}
	lost := l.now
	l.lose("c1b")
	l.pass(20 * time.Second)
	e := l.queryEndpoint("web", address)
	if after := e.HeldSince.Sub(lost); e.Verdict.Status != health.Healthy || after < -time.Second || after > 15*time.Second {
		t.Errorf("%s, held since %s after the last checker was lost", e.Verdict.Status, after)
	}
	drain := log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: health.Draining, Reason: "disk", Author: "carl"}
	if _, err := l.override(drain); err != nil {
		t.Fatal(err)
	}
	if e := l.queryEndpoint("web", address); !e.HeldSince.IsZero() || e.Verdict.Status != health.Draining {
		t.Errorf("%s by an override, held since %s", e.Verdict.Status, e.HeldSince)
	}
	if _, err := l.clear(drain.Scope, false); err != nil {
		t.Fatal(err)
	}
	l.join("c0a")
	l.pass(10 * time.Second)
	if e := l.queryEndpoint("web", address); !e.HeldSince.IsZero() {
		t.Errorf("held since %s although a checker is back", e.HeldSince)
	}
}
