package coordinator

import (
	"iter"
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/coordinator/ruling"
	"hdsd/coordinator/tally"
	"hdsd/health"
)

// publish takes note of what data planes get of an endpoint, in each cluster that has its
// assignment.
func (a *alarms) publish(rulings *ruling.Table, key health.Endpoint) {
	k := rulings.Cluster(key.Cluster)
	if k == nil {
		return
	}
	for _, other := range rulings.Sharing(k) {
		key.Cluster = other.Source.Name
		if index := other.Index(&key); index != catalog.None {
			a.panics.SetEndpoint(key.Cluster, index, publishedOf(rulings, other, index))
		}
	}
}

// decided takes note of what changes for data planes without a transition: by a freeze, and of new
// endpoints with ignore_new_hosts_until_first_hc when their cluster is taken over.
func (a *alarms) decided(rulings *ruling.Table, d *decision.Decision) {
	if d.Freeze != nil {
		a.publishAll(rulings, rulings.Clusters())
	}
	for _, name := range slices.Concat(d.TakenOver, d.GivenBack) {
		if k := rulings.Cluster(name); k.IgnoresNew() {
			a.publishAll(rulings, slices.Values([]*catalog.Cluster{k}))
		}
	}
}

// publishAll takes note of what data planes get of all endpoints of clusters, and of those that
// share their assignments.
func (a *alarms) publishAll(rulings *ruling.Table, clusters iter.Seq[*catalog.Cluster]) {
	services := map[string]bool{}
	for k := range clusters {
		if services[k.Source.ServiceName] {
			continue
		}
		services[k.Source.ServiceName] = true
		for _, other := range rulings.Sharing(k) {
			if !other.IsChecked() {
				a.panics.Remove(other.Source.Name)
				continue
			}
			a.panics.SetCluster(other.Source.Name, other.Panic, len(other.Endpoints), func(index int) tally.Published {
				return publishedOf(rulings, other, index)
			})
		}
	}
}

func publishedOf(rulings *ruling.Table, k *catalog.Cluster, index int) tally.Published {
	e := &k.Endpoints[index]
	p, is := rulings.Published(k, e)
	return tally.Published{Is: is, Status: p.Status, Priority: e.Priority, Weight: e.Weight()}
}

// tellPanics says for which clusters Envoys are in panic, or no longer are, once hdsd has settled.
func (a *alarms) tellPanics(now time.Time) {
	if !a.settled {
		return
	}
	for _, change := range a.panics.Take(now) {
		a.changed(change.Name)
		a.pending = append(a.pending, change.Condition())
		if change.Over {
			a.log.Warn().Str("event", "cluster_panic_over").Str("cluster", change.Name).Dur("lasted", now.Sub(change.Since)).
				Msg("Envoys are no longer in panic for a cluster, or all of it is down")
			continue
		}
		a.log.Error().Str("event", "cluster_panic").Str("cluster", change.Name).Str("reason", change.Text).
			Msg("Envoys disregard the published health of a cluster: too few endpoints are healthy")
	}
}
