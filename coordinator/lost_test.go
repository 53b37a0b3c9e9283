//go:build !race || soak

package coordinator

import (
	"strings"
	"testing"
	"time"

	"hdsd/api"
	"hdsd/machine"
)

// TestLostCheckersAreListed covers the time and the reason of a loss, until the checker returns or a day has
// passed.
func TestLostCheckersAreListed(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", "10.0.0.1:80"))
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	find := func(id string) *api.Checker {
		all, err := l.backend().Checkers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].ID == id {
				return &all[i]
			}
		}
		return nil
	}
	at := l.now
	l.lose("c1b")
	if k := find("c1b"); k == nil || k.Connected || k.Lost == nil || k.Lost.Gone || !k.Lost.Since.Equal(at) || !strings.Contains(k.Lost.Reason, "its seats are kept") {
		t.Errorf("just lost: %+v", k)
	}
	reported := find("c1b").LastReport
	l.pass(time.Minute)
	if k := find("c1b"); k == nil || k.Connected || k.Lost == nil || !k.Lost.Gone || !k.Lost.Since.Equal(at) || k.Locality.Zone == "" {
		t.Errorf("lost a minute ago: %+v", k)
	} else if reported.IsZero() || !k.LastReport.Equal(reported) {
		t.Errorf("its last report was at %v; a minute later, at %v", reported, k.LastReport)
	}
	if k := find("c0a"); k.Lost != nil {
		t.Errorf("not lost: %+v", k)
	}
	l.lose("c2c")
	l.pass(time.Minute)
	l.join("c2c")
	if k := find("c2c"); k.Lost != nil || !k.Connected {
		t.Errorf("back again: %+v", k)
	}
	l.core.Troubles.Expire(at.Add(machine.LostExpiry))
	if k := find("c1b"); k != nil {
		t.Errorf("lost a day ago: %+v", k)
	}
}
