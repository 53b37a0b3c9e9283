package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
)

// collectAt is the GOGC of the coordinator once it has read its files: garbage may grow to
// this percentage of what is in use before it is collected. Most of what hdsd holds stays,
// and it makes little garbage at rest, so that less than Go's 100 costs little time and
// saves memory, in floods too. Reading large files makes much garbage, and would take
// longer.
const collectAt = 25

// startTime is how long a start takes. What it took is given back then.
const startTime = time.Minute

// collectEarlier has garbage collected as it suits an hdsd that has read its files, unless
// GOGC says otherwise.
func collectEarlier() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}

// boundMemory sets the limit of the garbage collector, unless GOMEMLIMIT does. It is nine
// tenths of the one of the control group, if there is any.
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
