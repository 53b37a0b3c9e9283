package coordinator

import (
	"fmt"
	"time"

	"hdsd/assign"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/targets"
	"hdsd/health"
	"hdsd/notify"
)

// planning tells the fleet which endpoints to check: those whose addresses have room for the probes.
type planning struct{ core *core }

// count counts the probes of changed clusters. It returns the endpoints, changed or not, that begin or
// cease to wait for room.
func (p planning) count(d *feed.Delivery) []health.Hash {
	table, rulings := p.core.upkeep.targets, p.core.rulings
	moved := table.SetLimit(d.Rules.MaxProbes, rulings.Clusters())
	for _, name := range d.Removed {
		table.Replace(rulings.Cluster(name), nil)
	}
	for _, changed := range d.Changed {
		table.Replace(rulings.Cluster(changed.Cluster.Source.Name), changed.Cluster)
	}
	return append(moved, table.Admit()...)
}

// template returns the fields that all checked endpoints of a cluster have in common.
func (p planning) template(k *catalog.Cluster) assign.Endpoint {
	return assign.Endpoint{
		ClusterHash: health.ClusterHash(k.Source.Name), Redundancy: k.Redundancy, Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
		Class: p.core.fleet.Class(assign.Class{Needs: k.Checked.Needs, Reach: k.Reach}),
	}
}

// set tells the fleet of an endpoint, given the template of its cluster.
func (p planning) set(template *assign.Endpoint, k *catalog.Cluster, id health.EndpointID, index int) {
	e := *template
	e.ID, e.Hash, e.Locality = id, k.Hashes[index], *k.Checked.LocalityOf(index)
	if p.core.upkeep.targets.Waits(e.Hash) {
		e.Class = p.core.fleet.Class(assign.Class{Withheld: true})
	}
	p.core.fleet.Upsert(e)
}

// replan tells the fleet of endpoints that begin or cease to wait for room.
func (p planning) replan(moved []health.Hash) {
	for _, hash := range moved {
		id, ok := p.core.rulings.Find(hash)
		if !ok {
			continue
		}
		if k, index := p.core.rulings.At(id); index != catalog.None {
			template := p.template(k)
			p.set(&template, k, id, index)
		}
	}
}

// withheldReason says why an endpoint waits for room at its address.
func (v view) withheldReason() string {
	return fmt.Sprintf("not checked: its address would get more than %d probes a second (checkers.probe_targets.max_probes_per_second), and others were there before", v.core.rules.MaxProbes)
}

// limitProbes takes note of the addresses that have no room for more probes.
func (a *alarms) limitProbes(now time.Time, t *targets.Table) {
	addresses, endpoints := t.Waiting()
	a.metrics.fullAddresses.Set(float64(addresses))
	a.metrics.waitingEndpoints.Set(float64(endpoints))
	state := &a.probeLimit
	began := addresses > 0 && state.addresses == 0
	ended := addresses == 0 && state.addresses > 0
	if addresses > state.addresses {
		if more, ok := state.pace.Next(now); ok {
			last := t.Newest()
			a.log.Warn().Str("event", "probe_limit_reached").Stringer("address", last.Address).Str("cluster", last.Cluster).Int("endpoints", last.Endpoints).
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
	a.pending = append(a.pending, notify.Change{Over: ended, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.ProbeLimitReached}, Since: now, Command: "hdsd clusters", Text: state.Reason,
	}})
}
