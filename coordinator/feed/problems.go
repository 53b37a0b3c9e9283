package feed

import (
	"slices"
	"sync/atomic"

	"github.com/rs/zerolog"

	"hdsd/coordinator/catalog"
	"hdsd/hds/specifier"
	"hdsd/source"
)

// problemLog logs each problem of the sources once.
type problemLog struct {
	log    zerolog.Logger
	latest []source.Problem
	known  map[source.Problem]bool // latest, without the lines
	count  atomic.Int64            // of known; read by any goroutine
}

// update logs the problems that are new.
func (p *problemLog) update(problems []source.Problem) {
	if slices.Equal(problems, p.latest) {
		return
	}
	known := make(map[source.Problem]bool, len(problems))
	for _, problem := range problems {
		key := problem
		key.Line = 0 // it shifts when something above changes
		if known[key] = true; !p.known[key] {
			p.log.Warn().Str("event", "source_problem").Msg(problem.String())
		}
	}
	p.known, p.latest = known, problems
	p.count.Store(int64(len(known)))
}

// logChecks logs how the checks of a new version of a cluster differ from its source, unless the
// version before, which may be nil, differed in the same way.
func logChecks(log zerolog.Logger, before, after *catalog.Cluster) {
	logExcluded(log, before, after)
	if raised := after.Raised(); raised != "" && (before == nil || before.Raised() != raised) {
		log.Warn().Str("event", "interval_raised").Str("cluster", after.Source.Name).Str("source", after.Source.Source).Msg(raised)
	}
}

// logExcluded logs what a new version of a cluster excludes and the one before
// it, which may be nil, did not.
func logExcluded(log zerolog.Logger, before, after *catalog.Cluster) {
	logged := map[specifier.Exclusion]bool{}
	if before != nil {
		for _, q := range before.Exclusions() {
			logged[q] = true
		}
	}
	for _, q := range after.Exclusions() {
		if !logged[q] {
			logged[q] = true
			log.Warn().Str("event", "quarantined").Str("cluster", after.Source.Name).
				Str("address", q.Address).Str("source", after.Source.Source).
				Msg("not checked: " + q.Reason)
		}
	}
}
