package scale

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hdsd/test/fleet"
)

// full tells whether to measure with the crowds that a real attack had. Tests that do
// need minutes, and a machine that has nothing else to do.
func full() bool { return os.Getenv("HDSD_SCALE") == "full" }

// crowdSize is the size of a crowd: small, or that of a full measurement.
func crowdSize(small, large int) int {
	if full() {
		return large
	}
	return small
}

// beside has a test that measures nothing run beside others.
func beside(t testing.TB) {
	if test, ok := t.(*testing.T); ok && !full() {
		test.Parallel()
	}
}

// attacked is an hdsd as the attacks found it: 600 endpoints, 3 zones, 6 checkers. The
// binary is that of HDSD_BINARY, if it is set, so that another commit can be compared. Where
// nothing is measured, it runs beside those of other tests.
func attacked(t testing.TB) (*simulation, *detector) {
	t.Helper()
	beside(t)
	s := simulate(t, newWorld(10, 60), 6, 3, time.Second, "")
	if full() {
		s.Binary = fleet.Plain(t)
	}
	if path := os.Getenv("HDSD_BINARY"); path != "" {
		s.Binary = path
	}
	s.Start()
	s.connect()
	s.until("every endpoint to be healthy", s.allHealthy)
	return s, s.detect()
}

// compare logs how long detection took, undisturbed and under a crowd. Where a full
// crowd is measured, its p99 may be at most twice that of nobody.
func (s *simulation) compareDelays(undisturbed, crowded delays) {
	u := usageOf(s.t, s.PID())
	s.t.Logf("undisturbed: %v", undisturbed)
	s.t.Logf("crowded:     %v; peak RSS %d MiB, load %.1f", crowded, u.peak>>20, load(s.t))
	if full() && crowded.at(0.99) > 2*undisturbed.at(0.99) {
		s.t.Errorf("p99 was %v, more than twice %v", crowded.at(0.99), undisturbed.at(0.99))
	}
}

// askers is a crowd that asks again as soon as it has an answer.
type askers struct {
	stop              atomic.Bool
	running           sync.WaitGroup
	answered, refused atomic.Int64
}

// askedBy starts so many workers, each of which is a caller of its own.
func askedBy(s *simulation, workers int, paths ...string) *askers {
	a := &askers{}
	for range workers {
		a.running.Go(func() {
			client := http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := 0; !a.stop.Load(); i++ {
				if err := a.ask(&client, "http://"+s.HTTP+paths[i%len(paths)]); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	return a
}

func (a *askers) ask(client *http.Client, url string) error {
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		a.answered.Add(1)
	case http.StatusTooManyRequests:
		a.refused.Add(1)
	default:
		return errors.New(answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

func (a *askers) leave() {
	a.stop.Store(true)
	a.running.Wait()
}

// TestManyQueriesDelayNobody: a crowd asks for pages of 10,000 rows as fast as it can.
// Every flip is detected, nobody in the crowd fails, and a person who asks for a small
// page gets it. HDSD_SCALE=full has 100 workers for half a minute, and compares
// detection with that of an undisturbed hdsd.
func TestManyQueriesDelayNobody(t *testing.T) {
	s, d := attacked(t)
	span := time.Duration(crowdSize(2, 30)) * time.Second
	undisturbed := d.during(t, span, 100*time.Millisecond)
	a := askedBy(s, crowdSize(20, 100), "/v1/endpoints?pageSize=10000", "/v1/transitions?pageSize=10000")
	person := askedBy(s, 1, "/v1/endpoints?pageSize=20")
	crowded := d.during(t, span, 100*time.Millisecond)
	a.leave()
	person.leave()
	s.compareDelays(undisturbed, crowded)
	t.Logf("the crowd had %d answers (%d refusals), the person %d", a.answered.Load(), a.refused.Load(), person.answered.Load())
	if a.answered.Load() == 0 || person.answered.Load() < 5 || person.refused.Load() > 0 {
		t.Errorf("the crowd had %d answers, the person %d and %d refusals", a.answered.Load(), person.answered.Load(), person.refused.Load())
	}
}
