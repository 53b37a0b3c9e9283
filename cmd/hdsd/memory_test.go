package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

func TestMemoryIsBounded(t *testing.T) {
	const controlGroup = 1000 << 20
	noLimit := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for name, test := range map[string]struct {
		environment map[string]string
		group       memlimit.Provider
		percent     int
		limit       int64
		logs        string
	}{
		"a control group":             {nil, memlimit.Limit(controlGroup), collectAt, controlGroup * 9 / 10, `"event":"memory_limit","bytes":943718400`},
		"no limit":                    {nil, noLimit, collectAt, math.MaxInt64, ""},
		"no control group":            {nil, func() (uint64, error) { return 0, memlimit.ErrNoCgroup }, collectAt, math.MaxInt64, ""},
		"no limit that can be read":   {nil, func() (uint64, error) { return 0, errors.New("no file") }, collectAt, math.MaxInt64, `"event":"memory_limit_unknown"`},
		"what the operator sets goes": {map[string]string{"GOGC": "70", "GOMEMLIMIT": "1GiB"}, memlimit.Limit(controlGroup), 70, 1 << 30, `"bytes":1073741824`},
	} {
		t.Run(name, func(t *testing.T) {
			percent, limit := debug.SetGCPercent(70), debug.SetMemoryLimit(math.MaxInt64)
			t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
			for _, key := range []string{"GOGC", "GOMEMLIMIT", "AUTOMEMLIMIT"} {
				t.Setenv(key, "") // so that it is restored
				if err := os.Unsetenv(key); err != nil {
					t.Fatal(err)
				}
			}
			for key, value := range test.environment {
				t.Setenv(key, value)
			}
			if test.environment["GOMEMLIMIT"] != "" {
				debug.SetMemoryLimit(test.limit) // as the runtime does at the start
			}
			var log strings.Builder
			boundMemory(zerolog.New(&log), memlimit.WithProvider(test.group))
			if got := debug.SetGCPercent(70); got != test.percent {
				t.Errorf("GOGC is %d, want %d", got, test.percent)
			}
			if got := debug.SetMemoryLimit(-1); got != test.limit {
				t.Errorf("GOMEMLIMIT is %d, want %d", got, test.limit)
			}
			if !strings.Contains(log.String(), test.logs) || (test.logs == "") != (log.Len() == 0) {
				t.Errorf("the log is %q, want %q", log.String(), test.logs)
			}
		})
	}
}
