package coordinator

import (
	"github.com/rs/zerolog"

	"hdsd/store"
)

// logDisk logs the beginning or end of a failure of the disk.
func logDisk(log zerolog.Logger, failing error) {
	if failing != nil {
		log.Error().Str("event", "history_failing").Err(failing).
			Msg("the disk does not take the history: what changes waits in memory; checking and publishing go on; what operators set is in force, but not durable")
		return
	}
	log.Warn().Str("event", "history_recovered").Msg("the disk takes the history again, and has what waited")
}

// logAuditGap logs a gap in the audit.
func logAuditGap(log zerolog.Logger, g *store.AuditGap) {
	log.Error().Str("event", "audit_gap").Time("start", g.Start).Time("end", g.End).Uint64("count", g.Entries).
		Msg("entries of the audit are missing, because more than fit in memory waited for the disk; the log has them")
}

// logGap logs a gap in the history.
func logGap(log zerolog.Logger, g *store.Gap) {
	log.Error().Str("event", "history_gap").Time("start", g.Start).Time("end", g.End).Uint64("count", g.Transitions).
		Msg("transitions are missing from the history, because more than fit in memory waited for the disk; past health in between is not known")
}

// logQuota logs that the history nears its quota, leaves it, or was pruned.
func logQuota(log zerolog.Logger, q *store.Quota) {
	switch {
	case !q.Near:
		log.Info().Str("event", "history_quota_over").Int64("used", q.Used).Int64("max", q.Max).
			Msg("the history is well below history.max_bytes again")
	case q.Oldest.IsZero():
		log.Warn().Str("event", "history_quota").Int64("used", q.Used).Int64("max", q.Max).
			Msg("the history is near history.max_bytes: at that, the oldest transitions are deleted before their time")
	default:
		log.Warn().Str("event", "history_pruned_early").Int64("used", q.Used).Int64("max", q.Max).Uint64("count", q.Pruned).Time("oldest", q.Oldest).
			Msg("the oldest transitions are deleted before their time, to stay below history.max_bytes")
	}
}
