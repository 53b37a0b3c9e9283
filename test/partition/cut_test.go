package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hdsd/test/upstream"
)

// cut is a broken network, and which checkers or paths must be doubted for it.
type cut struct {
	name    string
	how     upstream.Behaviour
	severs  func(k checker, zone string) bool // reports whether a checker cannot reach a zone's endpoints
	checker string                            // the doubted checker, or
	paths   [][2]string                       // the doubted paths, from checkers to endpoints
	restart bool                              // hdsd is killed during the cut, and comes back
}

var cuts = []cut{
	{name: "a checker is reset by everyone", how: upstream.Refuse(), severs: alone("checker-1"), checker: "checker-1"},
	{name: "a checker gets no answer", how: upstream.Hang(), severs: alone("checker-2"), checker: "checker-2"},
	{name: "a zone resets all others", how: upstream.Refuse(), severs: outside("b"), paths: [][2]string{{"eu/a", "eu/b"}, {"eu/c", "eu/b"}, {"elsewhere", "eu/b"}}, restart: true},
	{name: "a zone does not answer the others", how: upstream.Hang(), severs: outside("c"), paths: [][2]string{{"eu/a", "eu/c"}, {"eu/b", "eu/c"}, {"elsewhere", "eu/c"}}},
	{
		name: "a zone and the others do not answer each other", how: upstream.Hang(), severs: between("a"),
		paths: [][2]string{{"eu/a", "eu/b"}, {"eu/a", "eu/c"}, {"eu/b", "eu/a"}, {"eu/c", "eu/a"}, {"elsewhere", "eu/a"}},
	},
}

func alone(id string) func(checker, string) bool {
	return func(k checker, _ string) bool { return k.id == id }
}

func outside(cutOff string) func(checker, string) bool {
	return func(k checker, zone string) bool { return zone == cutOff && k.zone != cutOff }
}

func between(cutOff string) func(checker, string) bool {
	return func(k checker, zone string) bool { return (zone == cutOff) != (k.zone == cutOff) }
}

func TestACutTakesOutOnlyWhatIsDown(t *testing.T) {
	l := newLab(t)
	for _, c := range cuts {
		if !t.Run(c.name, func(t *testing.T) { l.endure(t, &c) }) {
			return // the next cut starts when all is well
		}
	}
	l.checkHistory(t)
}

// endure runs a cut, during which endpoints fail for other reasons.
func (l *lab) endure(t *testing.T, c *cut) {
	victims, said, started := l.victims(t, c), len(l.Logs()), time.Now()
	l.sever(c)
	l.fail(t, victims[0])
	l.await(t, "doubt to be shown", func() bool { return l.doubts(t, c, l.Logs()[said:]) })
	t.Logf("doubt is shown after %v", time.Since(started).Round(time.Millisecond))
	l.awaitFailed(t, victims[0])
	l.await(t, "each zone to be told what it sees", func() bool { return l.zonesSee(t, c, victims[:1]) })
	t.Logf("what fails with the cut is out %v after it", time.Since(started).Round(time.Millisecond))
	if c.restart {
		said = len(l.Logs())
		l.Kill()
		l.Start()
		l.await(t, "doubt to be shown after a restart", func() bool { return l.doubts(t, c, l.Logs()[said:]) })
	}
	l.fail(t, victims[1])
	l.awaitFailed(t, victims[1])
	l.await(t, "each zone to be told what it sees, again", func() bool { return l.zonesSee(t, c, victims) })
	l.await(t, "the votes of who is cut off to be left out", func() bool { return l.leftOut(c, victims[1].Addr()) })

	said, started = len(l.Logs()), time.Now()
	l.mend(c)
	l.await(t, "belief in all", func() bool { return l.believes(t, c, l.Logs()[said:]) })
	t.Logf("all are believed %v after the end of the cut", time.Since(started).Round(time.Millisecond))
	for _, v := range victims {
		if e := l.Endpoints("web")[v.Addr()]; e.Health != "UNHEALTHY" && e.Health != "TIMEOUT" {
			t.Errorf("after the cut, an endpoint that is down is %+v", e)
		}
		if err := v.Set(upstream.Healthy()); err != nil {
			t.Fatal(err)
		}
	}
	l.await(t, "all to be well again", func() bool { return l.well(t) })
	l.down = 0
}

// fail makes an upstream answer 500 to everyone who reaches it.
func (l *lab) fail(t *testing.T, s *upstream.Server) {
	t.Helper()
	l.down++
	if err := s.Set(upstream.Status(500)); err != nil {
		t.Fatal(err)
	}
}

// awaitFailed waits until the data plane sends no traffic to an upstream.
func (l *lab) awaitFailed(t *testing.T, s *upstream.Server) {
	t.Helper()
	l.await(t, "an endpoint that fails to be found", func() bool { return l.plane.Clusters(t)["web"][s.Addr()].Failed() })
}

// doubts reports whether API, metrics and log show the doubt of a cut.
func (l *lab) doubts(t *testing.T, c *cut, logs string) bool {
	t.Helper()
	for _, p := range c.paths {
		if !strings.Contains(logs, fmt.Sprintf(`"event":"path_doubted","from":%q,"to":%q`, p[0], p[1])) {
			return false
		}
	}
	if len(c.paths) > 0 {
		return l.Metric("hdsd_paths_doubted") == float64(len(c.paths))
	}
	for id, k := range l.Checkers() {
		if k.Trusted == (id == c.checker) || k.Trusted == (k.DistrustReason != "") {
			return false
		}
	}
	return l.Metric("hdsd_checkers_doubted") == 1 && strings.Contains(logs, fmt.Sprintf(`"event":"checker_doubted","checker":%q`, c.checker))
}

// leftOut reports whether the votes of cut off checkers on an endpoint are shown as not
// believed.
func (l *lab) leftOut(c *cut, address string) bool {
	e, at := l.Endpoints("web")[address], 0
	for i, s := range l.upstreams {
		if s.Addr() == address {
			at = i
		}
	}
	for _, o := range e.Observations {
		if c.severs(l.checkers[o.Checker], zone(at)) && (o.Disbelieved == "" || !strings.Contains(e.Reason, "not believed")) {
			return false
		}
	}
	return true
}

// believes reports whether API, metrics and log show that the doubt is over.
func (l *lab) believes(t *testing.T, c *cut, logs string) bool {
	t.Helper()
	for _, p := range c.paths {
		if !strings.Contains(logs, fmt.Sprintf(`"event":"path_believed","from":%q,"to":%q`, p[0], p[1])) {
			return false
		}
	}
	if c.checker != "" && !strings.Contains(logs, fmt.Sprintf(`"event":"checker_believed","checker":%q`, c.checker)) {
		return false
	}
	for _, k := range l.Checkers() {
		if !k.Trusted || k.DistrustReason != "" {
			return false
		}
	}
	return l.Metric("hdsd_checkers_doubted") == 0 && l.Metric("hdsd_paths_doubted") == 0
}

// checkHistory checks that each endpoint became known once. A failed one must have gone
// down and come back as often as allowed, however briefly.
func (l *lab) checkHistory(t *testing.T) {
	t.Helper()
	falls, rises := map[string]int{}, map[string]int{}
	l.await(t, "the history to be committed", func() bool {
		clear(falls)
		clear(rises)
		for _, change := range l.Transitions("web") {
			switch {
			case change.From == "HEALTHY":
				falls[change.Address]++
			case change.To == "HEALTHY":
				rises[change.Address]++
			}
		}
		return !slices.ContainsFunc(l.upstreams, func(s *upstream.Server) bool {
			return rises[s.Addr()] != falls[s.Addr()]+1 || falls[s.Addr()] < min(l.failed[s.Addr()], 1)
		})
	})
	for _, s := range l.upstreams {
		if went, most := falls[s.Addr()], l.failed[s.Addr()]; went > most {
			t.Errorf("%s went %d times, want at most %d", s.Addr(), went, most)
		}
	}
}
