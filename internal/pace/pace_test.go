package pace_test

import (
	"testing"
	"time"

	"hdsd/internal/pace"
)

func TestOneASecond(t *testing.T) {
	var p pace.Pace
	start := time.Now()
	for _, step := range []struct {
		at   time.Duration
		more uint64
		ok   bool
	}{{0, 0, true}, {1, 0, false}, {time.Second - 1, 0, false}, {time.Second, 2, true}, {3 * time.Second, 0, true}} {
		if more, ok := p.Next(start.Add(step.at)); more != step.more || ok != step.ok {
			t.Errorf("after %v: %d, %t", step.at, more, ok)
		}
	}
}
