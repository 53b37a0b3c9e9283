package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/log"
	"hdsd/machine"
	"hdsd/rollout"
	"hdsd/rollout/canary"
)

// eventLog logs effects.
type eventLog struct {
	log zerolog.Logger
	*present
	names       *outsideNames
	transitions *transitionLog
	leftOut     leftOut
}

func newEventLog(log zerolog.Logger, p *present, names *outsideNames) eventLog {
	return eventLog{log: log, present: p, names: names, transitions: newTransitionLog(log, names)}
}

func (l *eventLog) observe(now time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.CheckerJoined:
		l.log.Info().Str("event", "checker_connected").Str("checker", e.Checker.ID).Str("version", e.Checker.Version).
			Str("zone", e.Checker.Locality.Zone).Msg("checker connected")
	case machine.FleetChanged:
		fleetLog{l.log, l.Timing.Grace}.write(e.Events)
	case machine.VotesJudged:
		judgeLog{&l.log, l.names}.write(e.Effects)
	case machine.TrialsChanged:
		for i := range e.Events {
			l.trial(&e.Events[i])
		}
	case machine.Logged:
		l.write(e.Entry)
	case machine.ChangesLeftOut:
		l.leftOut.count += e.Count
	case machine.ClustersApplied:
		if e.NothingChecked {
			l.log.Warn().Str("event", "nothing_checked").Int("before", e.PreviouslyChecked).Int("clusters", len(l.Rulings.Names())).
				Msg("no endpoint is checked any more")
		}
	case machine.PauseEnded:
		l.log.Warn().Str("event", "paused").Dur("lasted", e.Duration).
			Msg("hdsd did nothing for a while: it, or its machine, was paused or had no processor time; no checker is late for that")
	case machine.TickHandled:
		l.transitions.logOmitted(now)
		l.logLeftOut(now, l.Rulings.Paced())
	}
}

// leftOut counts the changes of ChangesLeftOut.
type leftOut struct {
	count  int       // since the latest line
	logged time.Time // time of the latest line
}

// maxNamedClusters limits the clusters that an event names.
const maxNamedClusters = 20

// leftOutInterval is the time between two lines of logLeftOut.
const leftOutInterval = 10 * time.Second

// logLeftOut logs the number of changes that were left out since the latest line, and the number of endpoints
// that change too often.
func (l *eventLog) logLeftOut(now time.Time, endpoints int) {
	if l.leftOut.count == 0 || now.Sub(l.leftOut.logged) < leftOutInterval {
		return
	}
	l.log.Warn().Str("event", "changes_left_out").Int("count", l.leftOut.count).Int("endpoints", endpoints).
		Msg("endpoints change too often: not each change is published and recorded")
	l.leftOut = leftOut{logged: now}
}

// write logs an entry of the log.
func (l *eventLog) write(entry *log.Entry) {
	if entry.Freeze != nil {
		l.freeze(entry.Freeze)
	}
	for i := range entry.Overrides {
		switch o := &entry.Overrides[i]; o.Kind {
		case log.Set:
			l.override("override_set", o, "an override replaces verdicts")
		case log.Cleared:
			l.override("override_cleared", o, "an override was cleared: verdicts count again")
		case log.Expired:
			l.override("override_expired", o, "an override expired: verdicts count again")
		}
	}
	if entry.Trust != nil {
		l.trust(entry.Trust)
	}
	if names := entry.TakenOver; len(names) > 0 {
		l.log.Info().Str("event", "clusters_taken_over").Int("count", len(names)).Strs("clusters", l.transitions.names.titles(names[:min(len(names), maxNamedClusters)])).
			Msg("each endpoint of these clusters has a verdict: data planes need not check them any more")
	}
	if names := entry.GivenBack; len(names) > 0 {
		l.log.Warn().Str("event", "clusters_given_back").Int("count", len(names)).Strs("clusters", l.transitions.names.titles(names[:min(len(names), maxNamedClusters)])).
			Msg("no checker is able to check some endpoints of these clusters, or they never had a verdict: data planes check these clusters themselves again")
	}
	for i := range entry.Transitions {
		l.transitions.write(&entry.Transitions[i])
	}
}

func (l *eventLog) override(event string, c *log.OverrideChange, text string) {
	o := &c.Override
	l.log.Warn().Str("event", event).Str("kind", overrideKinds[o.Status]).EmbedObject(l.names.logFields(o.Scope.Cluster)).Str("address", o.Scope.Address).
		Str("region", o.Scope.Locality.Region).Str("zone", o.Scope.Locality.Zone).Str("sub_zone", o.Scope.Locality.SubZone).
		Str("author", o.Author).Str("reason", o.Reason).Time("since", o.Since).Str("until", c.Until()).Str("by", c.By).Msg(text)
}

func (l *eventLog) freeze(c *log.FreezeChange) {
	if c.After == nil {
		l.log.Warn().Str("event", "unfrozen").Str("author", c.By).Str("frozen_by", c.Before.Author).
			Str("reason", c.Before.Reason).Time("since", c.Before.Since).Msg("publishing is no longer frozen: data planes get verdicts again")
		return
	}
	var replaced log.Freeze
	if c.Before != nil {
		replaced = *c.Before
	}
	l.log.Warn().Str("event", "frozen").Str("author", c.After.Author).Str("reason", c.After.Reason).
		Time("since", c.After.Since).Stringer("publish", c.After.Publication()).
		Str("replaced_author", replaced.Author).Str("replaced_reason", replaced.Reason).
		Msg("publishing is frozen: data planes get no new verdicts")
}

func (l *eventLog) trust(c *log.TrustChange) {
	var before log.Trust
	if c.Before != nil {
		before = *c.Before
	}
	switch after := c.After; {
	case after == nil:
		l.log.Warn().Str("event", "checker_judged").Str("checker", c.Checker).Str("author", c.By).
			Str("said_by", before.Author).Str("reason", before.Reason).Msg("an operator returned this checker to automatic trust")
	case after.Level == log.Trusted:
		l.log.Warn().Str("event", "checker_trusted").Str("checker", c.Checker).Str("author", after.Author).Str("reason", after.Reason).
			Str("replaced_author", before.Author).Str("replaced_reason", before.Reason).Msg("an operator trusts this checker: hdsd never doubts it")
	default:
		l.log.Warn().Str("event", "checker_distrusted").Str("checker", c.Checker).Str("author", after.Author).Str("reason", after.Reason).
			Str("replaced_author", before.Author).Str("replaced_reason", before.Reason).Msg("an operator distrusts this checker: none of its votes counts")
	}
}

// restored logs the orders of operators from before the restart that are still in force.
func (l *eventLog) restored(s *log.State) {
	if f := s.Freeze; f != nil {
		l.log.Warn().Str("event", "still_frozen").Str("author", f.Author).Str("reason", f.Reason).
			Time("since", f.Since).Stringer("publish", f.Publication()).Msg("publishing is still frozen, as before the restart")
	}
	if n := len(s.Overrides); n > 0 {
		l.log.Warn().Str("event", "still_overridden").Int("count", n).Msg("overrides from before the restart are in force: 'hdsd override list' shows them")
	}
	if n := len(s.Trust); n > 0 {
		l.log.Warn().Str("event", "still_judged").Int("count", n).Msg("operators trust or distrust checkers since before the restart: 'hdsd checkers' shows which")
	}
}

// trial logs an event of a trial.
func (l *eventLog) trial(e *rollout.Event) {
	switch e.Kind {
	case canary.Started:
		l.log.Debug().Str("event", "canary_started").EmbedObject(l.names.logFields(e.Cluster)).Str("checker", e.Checker).
			Msg("a new or changed cluster goes to this checker first")
	case canary.Proven:
		l.log.Debug().Str("event", "canary_proven").EmbedObject(l.names.logFields(e.Cluster)).Str("checker", e.Checker).
			Msg("a checker survived its first probe of a cluster: others of its build get it")
	case canary.Lost:
		l.log.Warn().Str("event", "canary_lost").EmbedObject(l.names.logFields(e.Cluster)).Str("checker", e.Checker).
			Msg("a checker was lost while it tried a cluster: the cluster is tried once more, alone, when no checker comes or goes")
	case canary.Blocked:
		l.log.Error().Str("event", "canary_blocked").EmbedObject(l.names.logFields(e.Cluster)).Str("checker", e.Checker).Msg(e.Reason)
	case canary.NotAccepted:
		l.log.Warn().Str("event", "canary_not_accepted").EmbedObject(l.names.logFields(e.Cluster)).Str("checker", e.Checker).
			Msg("a checker does not report what it was sent with this cluster, or nothing any more: the cluster is tried elsewhere, alone")
	case canary.Withdrawn: // without a result
	}
}
