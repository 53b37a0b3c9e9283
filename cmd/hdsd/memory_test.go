package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

func TestMemoryIsBounded(t *testing.T) {
	const controlGroup = 1000 << 20
	noLimit := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for name, test := range map[string]struct {
		environment map[string]string
		group       memlimit.Provider
		limit       int64
		logs        string
	}{
		"a control group":             {nil, memlimit.Limit(controlGroup), controlGroup * 9 / 10, `"event":"memory_limit","bytes":943718400`},
		"no limit":                    {nil, noLimit, math.MaxInt64, ""},
		"no control group":            {nil, func() (uint64, error) { return 0, memlimit.ErrNoCgroup }, math.MaxInt64, ""},
		"no limit that can be read":   {nil, func() (uint64, error) { return 0, errors.New("no file") }, math.MaxInt64, `"event":"memory_limit_unknown"`},
		"what the operator sets goes": {map[string]string{"GOMEMLIMIT": "1GiB"}, memlimit.Limit(controlGroup), 1 << 30, `"bytes":1073741824`},
	} {
		t.Run(name, func(t *testing.T) {
			limit := debug.SetMemoryLimit(math.MaxInt64)
			t.Cleanup(func() { debug.SetMemoryLimit(limit) })
			unset(t, "GOMEMLIMIT", "AUTOMEMLIMIT")
			for key, value := range test.environment {
				t.Setenv(key, value)
			}
			if test.environment["GOMEMLIMIT"] != "" {
				debug.SetMemoryLimit(test.limit) // as the runtime does at the start
			}
			var log strings.Builder
			boundMemory(zerolog.New(&log), memlimit.WithProvider(test.group))
			if got := debug.SetMemoryLimit(-1); got != test.limit {
				t.Errorf("GOMEMLIMIT is %d, want %d", got, test.limit)
			}
			if !strings.Contains(log.String(), test.logs) || (test.logs == "") != (log.Len() == 0) {
				t.Errorf("the log is %q, want %q", log.String(), test.logs)
			}
		})
	}
}

func TestTheMemoryOfAMachine(t *testing.T) {
	for text, want := range map[string]uint64{
		"MemTotal:       16384 kB\nMemFree: 1 kB\n": 16 << 20, "MemFree: 1 kB\nMemTotal: 1 kB": 1 << 10, "MemTotal: x kB": 0, "MemTotal:": 0, "": 0,
	} {
		if got := machineMemory(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestTheMemoryThatHdsdMayUse is what bounds it.
func TestTheMemoryThatHdsdMayUse(t *testing.T) {
	limit := debug.SetMemoryLimit(1 << 30)
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	if got := memory(); got != 1<<30 {
		t.Errorf("%d", got)
	}
}

// unset removes variables of the environment until the end of a test.
func unset(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		t.Setenv(key, "") // so that it is restored
		if err := os.Unsetenv(key); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGarbageIsCollectedEarlierAfterTheStart: once an hdsd is ready, or its start takes too long.
func TestGarbageIsCollectedEarlierAfterTheStart(t *testing.T) {
	percent := debug.SetGCPercent(70)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	unset(t, "GOGC")
	if (&collector{}).tune(); gogc() != 70 {
		t.Errorf("GOGC is %d before the start is over", gogc())
	}
	const away = ", {name: away, config_source: {initial_fetch_timeout: 3600s, api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, " +
		"grpc_services: [{google_grpc: {target_uri: \"127.0.0.1:1\", stat_prefix: x}}]}}}]\n"
	for name, test := range map[string]struct {
		config string
		start  time.Duration
	}{
		"ready":          {goodConfig, time.Hour},
		"takes too long": {strings.Replace(goodConfig, "]\n", away, 1), time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetGCPercent(70)
			untilTuned(t, test.config, test.start)
			if got := gogc(); got < collectAt || got > collectLatest {
				t.Errorf("GOGC is %d", got)
			}
		})
	}

	debug.SetGCPercent(70)
	t.Setenv("GOGC", "70")
	if (&collector{}).begin(); gogc() != 70 {
		t.Errorf("GOGC is %d, although the operator has set 70", gogc())
	}
}

// untilTuned runs an hdsd, whose start may take so long, until GOGC is not 70 any more.
func untilTuned(t *testing.T, config string, start time.Duration) {
	dir := folder(t, map[string]string{"hdsd.yaml": config + anyAddresses, "clusters.yaml": goodClusters})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, filepath.Join(dir, "hdsd.yaml"), start, zerolog.Nop(), io.Discard) }()
	for patience := time.After(time.Minute); gogc() == 70; {
		select {
		case <-patience:
			t.Fatal("GOGC stays 70")
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAFewHaveRoomForGarbage: what is collected at depends on how much is in use.
func TestAFewHaveRoomForGarbage(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 10 << 20: 100, 32 << 20: 100, 64 << 20: 50, 100 << 20: 30, 128 << 20: 25, 4 << 30: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("with %d MiB in use: %d %%, want %d", live>>20, got, want)
		}
	}
}

// gogc is the GOGC in force.
func gogc() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
