package coordinator_test

import (
	"strings"
	"testing"
)

// TestReloadDuringOutageOfServer covers a restart and a reload with the same server, or with another one that
// does not answer. The clusters of the server stay in use.
func TestReloadDuringOutageOfServer(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	other, _ := upstream(t)
	m := newManagement(t)
	m.says(byEDS("web"), endpoints("web", noWord, address))
	m.come()
	dir, local := t.TempDir(), static("local", other)
	s := newSite(t, dir, quick+m.source("mesh", "600s", ""), local)
	s.ready()
	s.checker("c1")
	s.recorded("web", address, "HEALTHY")
	s.stopped()
	m.leave()

	away := quick + m.source("mesh", "0.2s", "")
	s = newSite(t, dir, away, local)
	s.ready()
	p := s.plane()
	p.wait("web", "HEALTHY trusts")
	for i, text := range []string{away, strings.Replace(away, m.address, newManagement(t).address, 1)} {
		more := []string{"first", "second"}[i]
		local += static(more, other)
		if restart, err := s.Reload(configuration(t, dir, text, local)); err != nil || len(restart) > 0 {
			t.Fatalf("Reload: %v, %v", restart, err)
		}
		if got := s.healthOf("web", address); got != "HEALTHY" {
			t.Errorf("web is %q after a reload", got)
		}
		p.wait(more, "UNKNOWN checks") // nobody has checked it yet
	}
	if p.removals() > 0 {
		t.Errorf("the data plane was told of %d removals", p.removals())
	}
	// Another server that does say something takes its place.
	next := newManagement(t)
	next.says(byEDS("api"), endpoints("api", noWord, address))
	next.come()
	if _, err := s.Reload(configuration(t, dir, strings.Replace(away, m.address, next.address, 1), local)); err != nil {
		t.Fatal(err)
	}
	s.recorded("web", address, "UNKNOWN")
	p.wait("api", "UNKNOWN checks")
}
