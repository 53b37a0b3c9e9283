//go:build !race || soak

package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/notify"
)

// TestProbeLimit covers an endpoint beyond the limit of its address: hdsd does not check it, and shows this
// everywhere. It is checked as soon as there is room.
func TestProbeLimit(t *testing.T) {
	l := newLab(t)
	var log strings.Builder
	var told []notify.Change
	l.core.alarms.log = zerolog.New(&log)
	l.core.alarms.notify = func(all []notify.Change) {
		for _, c := range all {
			if c.Kind == notify.ProbeLimitReached {
				told = append(told, c)
			}
		}
	}
	want := func(what string, waiting int, checkers map[string]int) {
		t.Helper()
		for address, count := range checkers {
			if got := l.checkersOf(address); len(got) != count {
				t.Errorf("%s: %s is checked by %v", what, address, got)
			}
		}
		found := l.attentionOf("PROBE_LIMIT_REACHED")
		if len(found) != min(waiting, 1) || waiting > 0 && !strings.Contains(found[0].Text, "1 of the endpoints at 10.9.0.1, and 1 in all, are not checked") {
			t.Errorf("%s: %+v", what, found)
		}
		states := &l.core.metrics.states
		for name, gauge := range map[string]prometheus.Gauge{"hdsd_probe_limited_addresses": states.fullAddresses, "hdsd_endpoints_probe_limited": states.waitingEndpoints} {
			if value := testutil.ToFloat64(gauge); int(value) != waiting {
				t.Errorf("%s: %s is %v", what, name, value)
			}
		}
	}
	l.rules.Checkers.ProbeTargets = &configv1.ProbeTargets{MaxProbesPerSecond: 6} // two endpoints by three checkers every second
	first, second := web("web", "10.9.0.1:1", "10.9.0.1:2"), web("api", "10.9.0.1:3", "10.9.0.2:3")
	l.serve(first)
	l.join("ca", "cb", "cc", "cd")
	l.pass(settle + 10*time.Second)
	l.setClusters(first, second)
	l.pass(15 * time.Second)
	want("no room for a third", 1, map[string]int{"10.9.0.1:1": 3, "10.9.0.1:2": 3, "10.9.0.1:3": 0, "10.9.0.2:3": 3})
	api := l.core.Rulings.Cluster("api")
	key := keyOf("api", "10.9.0.1:3")
	if reason := (view{l.core}).StrandedReason(api, api.Find(&key)); !strings.Contains(reason, "would get more than 6 probes a second (checkers.probe_targets.max_probes_per_second)") {
		t.Errorf("the reason is %q", reason)
	}
	if text := log.String(); strings.Count(text, `"event":"probe_limit_reached","address":"10.9.0.1","cluster":"api"`) != 1 {
		t.Errorf("the log has %s", text)
	}
	l.join("ce") // a newcomer checks what no other checker does
	l.pass(15 * time.Second)
	want("a newcomer", 1, map[string]int{"10.9.0.1:3": 0})

	l.setClusters(web("web", "10.9.0.1:1"), second)
	l.pass(15 * time.Second)
	want("one has left", 0, map[string]int{"10.9.0.1:1": 3, "10.9.0.1:3": 3, "10.9.0.2:3": 3})
	l.wantPublished("api", "10.9.0.1:3", health.Healthy)
	if len(told) != 2 || told[0].Ended || !told[1].Ended || !strings.Contains(log.String(), `"event":"probe_limit_over"`) {
		t.Errorf("told %+v, %s", told, log.String())
	}
	l.setClusters(first, second)
	l.pass(15 * time.Second)
	want("it is back", 1, map[string]int{"10.9.0.1:1": 3, "10.9.0.1:2": 0, "10.9.0.1:3": 3})
	l.rules.Checkers.ProbeTargets.MaxProbesPerSecond = 9
	l.sets[0].Clusters = []*sourceCluster{second, first}
	l.reconfigure()
	l.pass(15 * time.Second)
	want("the limit is higher", 0, map[string]int{"10.9.0.1:1": 3, "10.9.0.1:2": 3, "10.9.0.1:3": 3})
	l.rules.Checkers.ProbeTargets.MaxProbesPerSecond = 6
	l.reconfigure()
	l.pass(15 * time.Second)
	want("the limit is lower", 1, map[string]int{"10.9.0.1:1": 3, "10.9.0.1:2": 3, "10.9.0.1:3": 0})
}
