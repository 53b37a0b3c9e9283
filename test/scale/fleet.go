package scale

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// patience is how long a large fleet may take for anything.
const patience = 2 * time.Minute

// simulation is a coordinator's process and the simulated checkers of it.
type simulation struct {
	*fleet.Coordinator
	t        testing.TB
	world    *world
	checkers []*checker
	zones    int
}

// simulate prepares a coordinator for a world. Nothing runs yet.
func simulate(t testing.TB, w *world, checkers, zones int, interval time.Duration, config string) *simulation {
	s := &simulation{t: t, world: w, zones: zones}
	s.Coordinator = fleet.Prepare(t, w.file(), fmt.Sprintf("reporting: {interval: %gs}\n%s", interval.Seconds(), config))
	for i := range checkers {
		s.checkers = append(s.checkers, &checker{
			id: fmt.Sprintf("checker-%03d", i), zone: string(rune('a' + i%zones)), server: s.GRPC, world: w, interval: interval,
			phase: interval * time.Duration(i) / time.Duration(checkers), failed: func(err error) { t.Error(err) },
		})
	}
	return s
}

// connect starts all checkers, until the test ends.
func (s *simulation) connect() {
	for _, k := range s.checkers {
		k.start()
	}
	s.t.Cleanup(func() {
		s.Kill() // or it would move everything to the last ones
		for _, k := range s.checkers {
			k.stop()
		}
	})
}

// inZone gives the checkers of one zone.
func (s *simulation) inZone(zone int) (found []*checker) {
	for i := zone; i < len(s.checkers); i += s.zones {
		found = append(found, s.checkers[i])
	}
	return found
}

// covered tells whether each endpoint was given to so many connected checkers.
func (s *simulation) covered(times int) bool {
	count := make([]int, len(s.world.addresses))
	for _, k := range s.checkers {
		for _, endpoint := range k.assigned() {
			count[endpoint]++
		}
	}
	for _, n := range count {
		if n != times {
			return false
		}
	}
	return true
}

// allEstablished tells whether the log says that each checker is established.
func (s *simulation) allEstablished() bool {
	var ids strings.Builder
	for line := range strings.Lines(s.Logs()) {
		if strings.Contains(line, `"event":"checkers_established"`) {
			ids.WriteString(line)
		}
	}
	for _, k := range s.checkers {
		if !strings.Contains(ids.String(), strconv.Quote(k.id)) {
			return false
		}
	}
	return true
}

// synced tells whether so many checkers are connected and follow their
// specifiers, which give each endpoint to three of them.
func (s *simulation) synced(connected int) bool {
	all := s.Checkers()
	assigned := 0
	for _, k := range all {
		if !k.Connected || k.Specifier != "SYNCED" {
			return false
		}
		assigned += k.AssignedEndpoints
	}
	return len(all) == connected && assigned == 3*len(s.world.addresses)
}

// allHealthy tells whether every endpoint has the verdict that it is up.
func (s *simulation) allHealthy() bool {
	healthy := 0
	for _, k := range s.Clusters() {
		healthy += k.Healthy
	}
	return healthy == len(s.world.addresses)
}

func (s *simulation) until(what string, condition func() bool) {
	s.t.Helper()
	envoy.Eventually(s.t, patience, what, condition)
}

// told is what checkers were sent so far.
func (s *simulation) told() (bytes, specifiers int64) {
	for _, k := range s.checkers {
		bytes += k.received.Load()
		specifiers += k.specifiers.Load()
	}
	return bytes, specifiers
}

// flipSome has endpoints chosen by chance fail or recover, so many a minute,
// for a time.
func (s *simulation) flipSome(aMinute int, d time.Duration) {
	random := rand.New(rand.NewPCG(1, 2))
	ticker := time.NewTicker(time.Minute / time.Duration(aMinute))
	defer ticker.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		<-ticker.C
		s.world.flip(random.IntN(len(s.world.addresses)))
	}
}
