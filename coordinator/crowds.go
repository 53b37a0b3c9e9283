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

// planning tells the fleet what there is to check, as far as its addresses have room for the probes.
type planning struct{ core *core }

// count counts what a change of the clusters makes addresses get. It returns the endpoints that
// have room now, or none any more, although they may not have changed.
func (p planning) count(d *feed.Delivery) []health.Hash {
	all, rulings := p.core.upkeep.targets, p.core.rulings
	moved := all.SetLimit(d.Rules.MaxProbes, rulings.Clusters())
	for _, name := range d.Removed {
		all.Replace(rulings.Cluster(name), nil)
	}
	for _, changed := range d.Changed {
		all.Replace(rulings.Cluster(changed.Cluster.Source.Name), changed.Cluster)
	}
	return append(moved, all.Admit()...)
}

// common is what the checked endpoints of a cluster have in common.
func (p planning) common(k *catalog.Cluster) assign.Endpoint {
	return assign.Endpoint{
		ClusterHash: health.ClusterHash(k.Source.Name), Redundancy: k.Redundancy, Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
		Class: p.core.fleet.Class(assign.Class{Needs: k.Checked.Needs, Reach: k.Reach}),
	}
}

// set tells the fleet of an endpoint, given what it has in common with others.
func (p planning) set(common *assign.Endpoint, k *catalog.Cluster, id health.EndpointID, index int) {
	e := *common
	e.ID, e.Hash, e.Locality = id, k.Hashes[index], *k.Checked.LocalityOf(index)
	if p.core.upkeep.targets.Waits(e.Hash) {
		e.Class = p.core.fleet.Class(assign.Class{Withheld: true})
	}
	p.core.fleet.Upsert(e)
}

// again tells the fleet of endpoints that have room now, or none any more.
func (p planning) again(moved []health.Hash) {
	for _, hash := range moved {
		id, ok := p.core.rulings.Find(hash)
		if !ok {
			continue
		}
		if k, index := p.core.rulings.At(id); index != catalog.None {
			common := p.common(k)
			p.set(&common, k, id, index)
		}
	}
}

// withheldReason says why an endpoint waits until its address has room for its probes.
func (v view) withheldReason() string {
	return fmt.Sprintf("not checked: its address would get more than %d probes a second (checkers.probe_targets.max_probes_per_second), and others were there before", v.core.rules.MaxProbes)
}

// crowded takes note of the addresses that have no room for more probes.
func (a *alarms) crowded(now time.Time, t *targets.Table) {
	addresses, endpoints := t.Waiting()
	a.metrics.crowded.Set(float64(addresses))
	a.metrics.waiting.Set(float64(endpoints))
	before := &a.crowds
	began := addresses > 0 && before.addresses == 0
	ended := addresses == 0 && before.addresses > 0
	if addresses > before.addresses {
		if more, ok := before.pace.Next(now); ok {
			last := t.Last()
			a.log.Warn().Str("event", "probe_limit_reached").Stringer("address", last.Address).Str("cluster", last.Cluster).Int("endpoints", last.Endpoints).
				Int("addresses", addresses).Uint64("more", more).Msg("an address would get more than checkers.probe_targets.max_probes_per_second: endpoints that came later are not checked")
		}
	}
	before.addresses = addresses
	before.Reason = ""
	if addresses > 0 {
		first := t.First()
		before.Reason = fmt.Sprintf("%d of the endpoints at %s, and %d in all, are not checked: with them it would get more than checkers.probe_targets.max_probes_per_second", first.Endpoints, first.Address, endpoints)
	}
	if !began && !ended {
		return
	}
	if ended {
		a.log.Info().Str("event", "probe_limit_over").Dur("lasted", now.Sub(before.Since)).Msg("no endpoint waits any more until its address has room for probes")
	}
	before.Since = now
	a.pending = append(a.pending, notify.Change{Over: ended, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.ProbeLimitReached}, Since: now, Command: "hdsd clusters", Text: before.Reason,
	}})
}
