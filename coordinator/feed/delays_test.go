package feed

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source/hold"
)

// TestTheClockEndsADelay although the source says nothing more. It is logged once a
// minute, and a reload keeps it.
func TestTheClockEndsADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		by := &fixed{web("a", "b")}
		rules := catalog.NewRules(&configv1.Config{})
		in := NewIntake(func(catalog.Delivery) {}, nil, zerolog.New(&log))
		in.Restart([]Reader{by}, rules, map[string]hold.Rule{"x": {}})
		c := startClock(context.Background(), in)
		defer c.stop()
		alternate := func() {
			for range 100 {
				in.Take(by, web("a"))
				in.Take(by, web("a", "b"))
			}
		}
		wantInUse := func(want int) {
			t.Helper()
			synctest.Wait()
			in.mu.Lock()
			defer in.mu.Unlock()
			if got := len(in.merged.Clusters); got != want {
				t.Errorf("%d clusters are in use, want %d", got, want)
			}
		}
		alternate()
		wantInUse(1)
		by.Set = web("a", "b")
		in.Restart([]Reader{by}, rules, map[string]hold.Rule{"x": {}})
		wantInUse(1)
		time.Sleep(time.Second) // of the bubble
		wantInUse(2)
		alternate()
		in.Take(by, web("a"))
		wantInUse(2)
		time.Sleep(2 * time.Second)
		wantInUse(1)
		if n := strings.Count(log.String(), `"source_alternates"`); n != 1 || in.guards.delays.Load() != 2 {
			t.Errorf("%d lines, %d delays: %s", n, in.guards.delays.Load(), log.String())
		}
		in.Restart(nil, rules, nil)
		if len(in.guards.bySource) != 0 {
			t.Error("a source that is configured no more is remembered")
		}
	})
}
