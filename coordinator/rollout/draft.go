package rollout

import (
	"iter"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/rollout/canary"
	"hdsd/hds/specifier"
	"hdsd/health"
)

// Work is what a checker has to check.
type Work struct {
	Endpoints iter.Seq[health.EndpointID]
	Count     int                 // approximate number of Endpoints
	Handovers []health.EndpointID // checked in addition, until other checkers are believed
	Sample    []health.EndpointID // probed in addition by a newcomer: its votes on them do not count
}

// VoteChange says that the votes of a checker on an endpoint end, begin again, or
// both.
type VoteChange struct {
	Endpoint         health.EndpointID
	Unassign, Assign bool
}

// Specifier makes the specifier of a connected checker. It contains the part of the
// checker's work that the checker may be sent. The owner changes the votes before it
// sends the specifier.
func (r *Rollout) Specifier(now time.Time, id string, w Work) (*specifier.Specifier, []VoteChange) {
	to := r.recipients[id]
	to.withheld = nil
	d := draft{
		rollout: r, to: to, now: now,
		items: make([]specifier.Item, 0, w.Count), versions: make(map[string]*selection, len(to.versions)),
		tried: map[string]map[canary.Shape]bool{},
	}
	for endpoint := range w.Endpoints {
		if !d.add(endpoint) {
			to.withhold(d.cluster.Source.Name)
		}
	}
	for _, endpoint := range w.Handovers {
		d.add(endpoint)
	}
	counted := len(d.votes)
	for _, endpoint := range w.Sample {
		d.add(endpoint)
	}
	d.votes = d.votes[:counted]
	samples := d.addSamples()
	spec := specifier.Build(d.items, r.options.Report)
	r.serial++
	spec.Serial, spec.Retell = r.serial, d.retell
	to.versions, to.denied, to.samples = d.versions, d.denied, samples
	r.Pace.Sent(now, id, spec)
	r.ledger.Sent(now, id, spec.Serial)
	return spec, d.votes
}

// NoSpecifier records that a checker gets no specifier, and so lacks nothing.
func (r *Rollout) NoSpecifier(id string) {
	r.Pace.Skip(id)
	if to := r.recipients[id]; to != nil {
		to.withheld = nil
	}
}

// withhold records that a checker does not get all of a cluster. Endpoints of one
// cluster mostly come together.
func (to *recipient) withhold(cluster string) {
	if n := len(to.withheld); n == 0 || to.withheld[n-1] != cluster {
		to.withheld = append(to.withheld, cluster)
	}
}

// draft is a specifier that is being made.
type draft struct {
	rollout  *Rollout
	to       *recipient
	now      time.Time
	items    []specifier.Item
	versions map[string]*selection            // what the checker gets of each cluster
	tried    map[string]map[canary.Shape]bool // clusters on trial, with the shapes in the checker's share
	denied   []string                         // clusters that it may try later
	retell   bool
	votes    []VoteChange

	// State of the current cluster; its endpoints mostly come together.
	cluster       *catalog.Cluster
	history       *history
	before, after *selection // before is nil if the checker had no endpoint of the cluster
	shapes        map[canary.Shape]bool
}

// add adds an endpoint as far as the checker may have it. It reports whether the
// checker gets the present version of it in full.
func (d *draft) add(id health.EndpointID) bool {
	k, index := d.rollout.lookup.Endpoint(id)
	if k != d.cluster {
		d.turnTo(k)
	}
	hash, sent := k.Hashes[index], true
	if d.after.cluster != k || len(d.after.withheld) > 0 {
		index, sent = d.history.sent(d.after, hash)
	}
	if d.before != nil && !d.before.same(d.after) {
		d.compare(id, hash, index, sent)
	}
	if !sent {
		return false
	}
	d.items = append(d.items, specifier.Item{Cluster: d.after.cluster.Checked, Endpoint: index, ID: id})
	if d.shapes != nil {
		d.shapes[d.after.cluster.Shapes[index]] = true
	}
	if _, sample := d.to.samples[id]; sample {
		d.retell = true // its votes were reported already, and did not count
	}
	return d.after.cluster == k
}

// compare drops the checker's votes on an endpoint if it now gets another version, or
// none.
func (d *draft) compare(id health.EndpointID, hash health.Hash, index int, sent bool) {
	_, had := d.history.sent(d.before, hash)
	switch {
	case had && !sent:
		d.votes = append(d.votes, VoteChange{Endpoint: id, Unassign: true})
	case !had && sent:
		d.votes = append(d.votes, VoteChange{Endpoint: id, Unassign: true, Assign: true})
	case had && d.history.differs(d.before.cluster, d.after.cluster, index):
		d.votes = append(d.votes, VoteChange{Endpoint: id, Assign: true})
	}
}

// turnTo makes a cluster the current one.
func (d *draft) turnTo(k *catalog.Cluster) {
	name := k.Source.Name
	d.cluster, d.history, d.before = k, d.rollout.histories[name], d.to.versions[name]
	if d.after = d.versions[name]; d.after == nil {
		d.after = d.choose(name)
		d.versions[name] = d.after
	}
	d.shapes = d.tried[name]
}

// choose decides what the checker gets of a cluster.
func (d *draft) choose(name string) *selection {
	present := d.history.present
	if d.rollout.ledger.Proven(d.to.build, name) {
		delete(d.history.stable, d.to.build)
		if before := d.before; before != nil && before.cluster == present && len(before.withheld) == 0 {
			return before
		}
		return &selection{cluster: present}
	}
	if d.rollout.mayTry(d.now, d.to, name) {
		d.tried[name] = map[canary.Shape]bool{}
		return &selection{cluster: present}
	}
	d.denied = append(d.denied, name)
	return d.rollout.usable(d.history, d.to)
}

// maxSamples bounds how many endpoints a canary gets beyond its share of a cluster.
const maxSamples = 100

// addSamples adds one endpoint of each shape on trial that the checker's share lacks.
// Its votes on them do not count.
func (d *draft) addSamples() map[health.EndpointID]struct{} {
	var samples map[health.EndpointID]struct{}
	r, to := d.rollout, d.to
	for _, name := range r.ledger.Trials(to.ID) {
		k, seen, count := r.histories[name].present, d.tried[name], 0
		if !to.Abilities.Has(k.Checked.Needs...) {
			r.ledger.Withdraw(d.now, name) // its endpoints have moved away
			continue
		}
		if seen == nil {
			seen = map[canary.Shape]bool{}
		}
		for i, shape := range k.Shapes {
			if seen[shape] || r.ledger.ProvenShape(to.build, shape) || count == maxSamples {
				continue
			}
			seen[shape] = true
			count++
			id := r.lookup.ID(k.Hashes[i])
			d.items = append(d.items, specifier.Item{Cluster: k.Checked, Endpoint: i, ID: id})
			if samples == nil {
				samples = map[health.EndpointID]struct{}{}
			}
			samples[id] = struct{}{}
		}
	}
	return samples
}
