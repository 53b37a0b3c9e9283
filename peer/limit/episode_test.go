package limit_test

import (
	"testing"
	"time"

	"hdsd/peer/limit"
)

func TestEpisode(t *testing.T) {
	var e limit.Episode
	start := time.Now()
	for _, step := range []struct {
		second int
		wrong  bool
		since  int // the second, while something is wrong
		logged bool
		lasted time.Duration // of an end that is logged
	}{
		{second: 0},
		{second: 1, wrong: true, since: 1, logged: true},
		{second: 2, wrong: true, since: 1},
		{second: 3, logged: true, lasted: 2 * time.Second},
		{second: 4},
		{second: 5, wrong: true, since: 5},
		{second: 6}, // without a beginning in the log
		{second: 7, wrong: true, since: 7},
		{second: 61, wrong: true, since: 7, logged: true}, // it lasts
		{second: 62, logged: true, lasted: 55 * time.Second},
	} {
		now := start.Add(time.Duration(step.second) * time.Second)
		var logged bool
		var lasted time.Duration
		if step.wrong {
			logged = e.Begin(now, now)
			if since := e.Since().Sub(start); since != time.Duration(step.since)*time.Second {
				t.Errorf("second %d: since %v", step.second, since)
			}
		} else if lasted, logged = e.End(now); !e.Since().IsZero() {
			t.Errorf("second %d: since %v", step.second, e.Since())
		}
		if logged != step.logged || step.lasted > 0 && lasted != step.lasted {
			t.Errorf("second %d: logged %t, lasted %v", step.second, logged, lasted)
		}
	}
}
