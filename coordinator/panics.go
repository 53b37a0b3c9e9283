package coordinator

import (
	"iter"
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/coordinator/tally"
	"hdsd/health"
	"hdsd/log"
	"hdsd/ruling"
)

// publish takes note of an endpoint as data planes get it, in each cluster with its assignment.
func (a *alarms) publish(rulings *ruling.Table, key health.Endpoint) {
	k := rulings.Cluster(key.Cluster)
	if k == nil {
		return
	}
	for _, other := range rulings.Sharing(k) {
		key.Cluster = other.Source.Name
		if index := other.Index(&key); index != catalog.None {
			a.panics.SetEndpoint(key.Cluster, index, publishedOf(rulings, other, index))
			a.onPanicChange(key.Cluster)
		}
	}
}

// decided takes note of changes for data planes without a transition: a freeze, and a takeover of a
// cluster that ignores new endpoints (ignore_new_hosts_until_first_hc).
func (a *alarms) decided(rulings *ruling.Table, e *log.Entry) {
	if e.Freeze != nil {
		a.publishAll(rulings, rulings.Clusters())
	}
	for _, name := range slices.Concat(e.TakenOver, e.GivenBack) {
		if k := rulings.Cluster(name); k.IgnoresNew() {
			a.publishAll(rulings, slices.Values([]*catalog.Cluster{k}))
		}
	}
}

// publishAll takes note of all endpoints of clusters as data planes get them, and of the clusters that
// share their assignments.
func (a *alarms) publishAll(rulings *ruling.Table, clusters iter.Seq[*catalog.Cluster]) {
	services := map[string]bool{}
	for k := range clusters {
		if services[k.Source.ServiceName] {
			continue
		}
		services[k.Source.ServiceName] = true
		for _, other := range rulings.Sharing(k) {
			a.onPanicChange(other.Source.Name)
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
	p, ok := rulings.Published(k, e)
	return tally.Published{Present: ok, Status: p.Status, Priority: e.Priority, Weight: e.Weight()}
}

// tellPanics reports the panics that begin and end, once hdsd has settled.
func (a *alarms) tellPanics(now time.Time) {
	if !a.settled {
		return
	}
	for _, change := range a.panics.Take(now) {
		a.onPanicChange(change.Name)
		a.pending = append(a.pending, change.Condition())
		if change.Over {
			a.log.Warn().Str("event", "cluster_panic_over").EmbedObject(a.names.logFields(change.Name)).Dur("lasted", now.Sub(change.Since)).
				Msg("Envoys are no longer in panic for a cluster, or all of it is down")
			continue
		}
		a.log.Error().Str("event", "cluster_panic").EmbedObject(a.names.logFields(change.Name)).Str("reason", change.Text).
			Msg("Envoys disregard the published health of a cluster: too few endpoints are healthy")
	}
}
