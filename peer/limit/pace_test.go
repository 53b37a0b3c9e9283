package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/peer/limit"
)

func TestOneASecond(t *testing.T) {
	var p limit.Pace
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

func TestPacedLines(t *testing.T) {
	var out strings.Builder
	log, start := zerolog.New(&out), time.Now()
	p := limit.Pace{Interval: time.Minute}
	for second := range 62 {
		p.Warn(start.Add(time.Duration(second)*time.Second), &log, "refused").Int("second", second).Msg("no")
	}
	want := `{"level":"warn","event":"refused","second":0,"more":0,"message":"no"}
{"level":"warn","event":"refused","second":60,"more":59,"message":"no"}
`
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}
