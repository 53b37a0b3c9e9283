package scale

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"hdsd/test/fleet"
)

// digest returns that of the whole plan.
func (s *simulation) digest() string {
	var answer map[string]json.RawMessage
	if err := s.Get("/v1/status", &answer); err != nil {
		s.t.Fatal(err)
	}
	return string(answer["planDigest"])
}

// count returns how often each checker has connected, was sent a specifier, and how many
// endpoints it has.
func count(of []*checker) (streams, specifiers, endpoints map[string]int) {
	streams, specifiers, endpoints = map[string]int{}, map[string]int{}, map[string]int{}
	for _, k := range of {
		streams[k.id], specifiers[k.id], endpoints[k.id] = int(k.streams.Load()), int(k.specifiers.Load()), len(k.assigned())
	}
	return streams, specifiers, endpoints
}

// TestManyCheckersStopReading: seven in ten checkers read nothing for a while, though their
// connections stay. Nobody else is lost, nobody else gets their work, nothing false is
// published, and half a minute later all is as it was: the plan, and that each outage is
// detected. HDSD_SCALE=full has 100,000 endpoints on 200 checkers, which read nothing for a
// minute.
func TestManyCheckersStopReading(t *testing.T) {
	beside(t)
	w, size, lasts := newWorld(20, 60), 20, 16*time.Second
	if full() {
		w, size, lasts = newWorld(clusters, endpoints/clusters), checkers, time.Minute
	}
	w.check = "{timeout: 0.5s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}"
	s := simulate(t, w, size, zones, time.Second, "")
	s.Binary = fleet.Plain(t)
	for _, k := range s.checkers {
		k.reads = newDoor()
	}
	s.Start()
	s.connect()
	s.until("every endpoint to be healthy", s.allHealthy)
	s.until("every checker to follow", func() bool { return s.synced(size) })
	j, digest := newJudge(t, s), s.digest()
	j.settle(patience)

	stopped, rest := s.checkers[:size*7/10], s.checkers[size*7/10:]
	streams, specifiers, had := count(rest)
	for _, k := range stopped {
		k.reads.shut()
	}
	for began, lost := time.Now(), false; time.Since(began) < lasts; time.Sleep(200 * time.Millisecond) { // the fault itself
		now, sent, has := count(rest)
		if !maps.Equal(now, streams) {
			t.Fatalf("others were lost: %v streams, were %v", now, streams)
		}
		all, before := 0, 0
		for id, n := range has {
			all, before = all+n, before+had[id]
			if more := sent[id] - specifiers[id]; more > 3 {
				t.Fatalf("%s was sent %d specifiers", id, more)
			}
		}
		if all > before+before/20 {
			t.Fatalf("the others have %d endpoints, had %d", all, before)
		}
		if connected := s.Metric("hdsd_checkers_connected"); !lost && connected == float64(len(rest)) {
			t.Logf("those that do not read were lost after %v", time.Since(began).Round(100*time.Millisecond))
			lost = true
		} else if connected < float64(len(rest)) {
			t.Fatalf("%g checkers are connected, %d read", connected, len(rest))
		}
	}
	for _, k := range stopped {
		k.reads.open()
	}
	began := time.Now()
	s.until("all to be as it was", func() bool { return s.synced(size) && s.digest() == digest })
	took := time.Since(began)
	if now, _, _ := count(rest); !maps.Equal(now, streams) {
		t.Errorf("others were lost: %v streams, were %v", now, streams)
	}
	for endpoint := range 10 {
		j.flip(endpoint)
	}
	j.settle(detected)
	t.Logf("%d endpoints, %d of %d checkers read nothing for %v: all was as before after %v; %v; load %.1f",
		len(w.addresses), len(stopped), size, lasts, took.Round(100*time.Millisecond), j, load(t))
	if took > 30*time.Second {
		t.Errorf("all is as it was only after %v", took)
	}
}
