package coordinator

import (
	"fmt"
	"time"

	"hdsd/catalog/targets"
	"hdsd/notify"
)

// withheldReason returns the reason of an endpoint that waits for room at its address.
func (v view) withheldReason() string {
	return fmt.Sprintf("not checked: its address would get more than %d probes a second (checkers.probe_targets.max_probes_per_second), and others were there before", v.core.Rules.MaxProbes)
}

// checkProbeLimit logs, shows and notifies of addresses without room for more probes.
func (a *alarms) checkProbeLimit(now time.Time, t *targets.Table) {
	addresses, endpoints := t.Waiting()
	a.metrics.fullAddresses.Set(float64(addresses))
	a.metrics.waitingEndpoints.Set(float64(endpoints))
	state := &a.probeLimit
	began := addresses > 0 && state.addresses == 0
	ended := addresses == 0 && state.addresses > 0
	if addresses > state.addresses {
		if more, ok := state.pace.Next(now); ok {
			last := t.Newest()
			a.log.Warn().Str("event", "probe_limit_reached").Stringer("address", last.Address).EmbedObject(a.names.logFields(last.Cluster)).Int("endpoints", last.Endpoints).
				Int("addresses", addresses).Uint64("more", more).Msg("an address would get more than checkers.probe_targets.max_probes_per_second: endpoints that came later are not checked; raise the limit if the source is right")
		}
	}
	state.addresses = addresses
	state.Reason = ""
	if addresses > 0 {
		first := t.Oldest()
		state.Reason = fmt.Sprintf("%d of the endpoints at %s, and %d in all, are not checked: with them it would get more than checkers.probe_targets.max_probes_per_second", first.Endpoints, first.Address, endpoints)
	}
	if !began && !ended {
		return
	}
	if ended {
		a.log.Info().Str("event", "probe_limit_over").Dur("lasted", now.Sub(state.Since)).Msg("no endpoint waits any more until its address has room for probes")
	}
	state.Since = now
	a.pending = append(a.pending, notify.Change{Ended: ended, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.ProbeLimitReached}, Since: now, Command: "hdsd clusters", Text: state.Reason,
	}})
}
