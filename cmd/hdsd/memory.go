package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

// collectAt is the GOGC of the coordinator: garbage may grow to this percentage of what is
// in use before it is collected. Most of what hdsd holds stays, and it makes little garbage
// at rest, so that less than Go's 100 costs little time and saves much memory
// (docs/figures.md).
const collectAt = 25

// boundMemory sets the garbage collector, unless GOGC and GOMEMLIMIT do. The limit is
// nine tenths of the one of the control group, if there is any.
func boundMemory(log zerolog.Logger, options ...memlimit.Option) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	limit, err := memlimit.Set(options...)
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported): // no limit
	case err != nil:
		log.Warn().Str("event", "memory_limit_unknown").Err(err).Msg("the memory limit of the control group cannot be read: set GOMEMLIMIT")
	case limit < math.MaxInt64:
		log.Info().Str("event", "memory_limit").Int64("bytes", limit).Msg("garbage is collected more often near this much memory")
	}
}
