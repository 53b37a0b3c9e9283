package feed

import (
	"slices"
	"sync/atomic"

	"github.com/rs/zerolog"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
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

// logChecks logs the differences between the checks of a new version of a cluster and its
// source, unless the previous version, which may be nil, had the same ones.
func logChecks(log zerolog.Logger, previous, next *catalog.Cluster) {
	logExcluded(log, previous, next)
	if raised := next.Raised(); raised != "" && (previous == nil || previous.Raised() != raised) {
		log.Warn().Str("event", "interval_raised").EmbedObject(ClusterName{next.Source.Name, next.Source.Outside()}).Str("source", next.Source.Source).Msg(raised)
	}
}

// logExcluded logs the exclusions of a new version of a cluster that the previous one, which
// may be nil, did not have.
func logExcluded(log zerolog.Logger, previous, next *catalog.Cluster) {
	logged := map[specifier.Exclusion]bool{}
	if previous != nil {
		for _, q := range previous.Exclusions() {
			logged[q] = true
		}
	}
	for _, q := range next.Exclusions() {
		if !logged[q] {
			logged[q] = true
			log.Warn().Str("event", "quarantined").EmbedObject(ClusterName{next.Source.Name, next.Source.Outside()}).
				Str("address", q.Address).Str("source", next.Source.Source).
				Msg("not checked: " + q.Reason)
		}
	}
}
