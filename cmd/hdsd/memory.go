package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

// These are the GOGC of the coordinator once it is ready: garbage may grow to this percentage of
// what is in use before it is collected. Most of what hdsd holds stays, and it makes little
// garbage at rest, so that less than Go's 100 costs little time and saves memory, in floods too.
// To become ready, a large one makes much garbage while what it holds grows, and would collect
// over and over. A small hdsd saves little, and would collect often: it has room for some
// garbage in any case.
const (
	collectAt     = 25
	collectLatest = 100
	roomy         = 32 << 20 // bytes of garbage
)

// tuneEvery is the interval between looks at the memory in use.
const tuneEvery = 2 * time.Second

// startTime bounds a start. Its memory is returned then, and an hdsd that still waits for a
// source collects as one that is ready.
const startTime = time.Minute

// collector sets the garbage collector for an hdsd that is ready, unless GOGC is set.
type collector struct {
	begun   bool
	percent int
}

// begin enables tune.
func (c *collector) begin() {
	c.begun = true
	c.tune()
}

// tune sets the percentage for the memory in use.
func (c *collector) tune() {
	if !c.begun || os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if percent := percentFor(live[0].Value.Uint64()); percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor returns the percentage for so many bytes in use, in steps: setting it stops the
// world.
func percentFor(live uint64) int {
	const step = 5
	percent := roomy * 100 / max(live, 1)
	return int(min(max(percent, collectAt), collectLatest)) / step * step
}

// boundMemory sets the limit of the garbage collector, unless GOMEMLIMIT is set. It is nine
// tenths of the control group's, if there is one.
func boundMemory(log zerolog.Logger, options ...memlimit.Option) {
	limit, err := memlimit.Set(options...)
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported): // no limit
	case err != nil:
		log.Warn().Str("event", "memory_limit_unknown").Err(err).Msg("the memory limit of the control group cannot be read: set GOMEMLIMIT")
	case limit < math.MaxInt64:
		log.Info().Str("event", "memory_limit").Int64("bytes", limit).Msg("garbage is collected more often near this much memory")
	}
}

// memory returns the bytes that hdsd may use: the limit of the garbage collector or, without
// one, the memory of the machine; 0 if unknown.
func memory() uint64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return uint64(limit)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return machineMemory(string(text))
}

// machineMemory returns the memory of a machine by the text of its /proc/meminfo, 0 if unknown.
func machineMemory(text string) uint64 {
	const unit = 1 << 10 // kB
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kilobytes, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes * unit
		}
	}
	return 0
}
