package coordinator

import (
	"fmt"
	"time"

	"hdsd/canary"
	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// tellTrial logs and counts what became of a trial.
func (c *core) tellTrial(e canary.Event) {
	switch e.Kind {
	case canary.Started:
		c.log.Debug().Str("event", "canary_started").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a new or changed cluster is tried at one checker first")
	case canary.Proven:
		c.metrics.canaryProven.Inc()
		c.log.Debug().Str("event", "canary_proven").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a checker has lived through its first probe of a cluster: others of its kind may have it")
	case canary.Lost:
		c.metrics.canaryLost.Inc()
		c.log.Warn().Str("event", "canary_lost").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a checker was lost while it tried a cluster: it is tried once more, alone, when no checker comes or goes")
	case canary.Quarantined:
		c.metrics.canaryLost.Inc()
		c.log.Error().Str("event", "canary_quarantined").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg(c.trialReason(e.Cluster))
	case canary.NotTaken:
		c.log.Warn().Str("event", "canary_not_taken").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a checker does not report what it was sent with this cluster: it is tried elsewhere, alone")
	case canary.Withdrawn: // nothing came of it
	}
}

// trialReason says why a cluster, as it is now, is not sent to all who are to
// have it; empty where it is.
func (c *core) trialReason(name string) string {
	s := c.canary.Standing(name)
	moment := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	switch {
	case len(s.Losses) > 1:
		return fmt.Sprintf("in quarantine: %s (at %s) and %s (at %s) were lost while they were the first to be sent it, so nobody else is; "+
			"what it was before stays in use; change the cluster, or remove it and add it again to have it tried again",
			s.Losses[0].Checker, moment(s.Losses[0].Time), s.Losses[1].Checker, moment(s.Losses[1].Time))
	case s.Canary != "":
		return fmt.Sprintf("a new or changed cluster is tried at one checker first, now at %s", s.Canary)
	case len(s.Losses) > 0:
		return fmt.Sprintf("%s was lost (at %s) while it tried this cluster first; it is tried once more, alone, when no checker has come or gone for a while",
			s.Losses[0].Checker, moment(s.Losses[0].Time))
	case s.RefusedBy != "":
		return fmt.Sprintf("on trial, not taken by %s (look at its hds_delegate.errors); it is tried elsewhere, alone, from %s on", s.RefusedBy, moment(s.Retry))
	}
	return ""
}

// untried says why an endpoint without any vote has none, where that is
// because nobody may be sent it yet.
func (c *core) untried(k *catalog.Cluster, index int, v *health.Verdict) string {
	for _, o := range v.Observations {
		if !o.Time.IsZero() {
			return ""
		}
	}
	for _, known := range c.recipients {
		if c.fleet.Connected(known.ID) && c.canary.ProvenShape(known.build, k.Source.Name, k.Shapes[index]) {
			return ""
		}
	}
	if reason := c.trialReason(k.Source.Name); reason != "" {
		return "not checked yet: " + reason
	}
	return "not checked yet: a new or changed cluster is tried at one checker first"
}
