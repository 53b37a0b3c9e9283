package rollout

import (
	"iter"
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/health"
)

// Work is the endpoints that a checker checks.
type Work struct {
	Endpoints iter.Seq[health.EndpointID]
	Count     int                 // approximate number of Endpoints
	Handovers []health.EndpointID // also checked, until other checkers are believed
	Sample    []health.EndpointID // also probed by a newcomer: its votes on them do not count
}

// VoteChange ends or restarts the votes of a checker on an endpoint, or both.
type VoteChange struct {
	Endpoint         health.EndpointID
	Unassign, Assign bool
}

// Specifier makes the specifier of a connected checker, with the allowed part of its work. The
// owner changes the votes before it sends the specifier.
func (r *Rollout) Specifier(now time.Time, id string, w Work) (*specifier.Specifier, []VoteChange) {
	c := r.recipients[id]
	c.withheld = nil
	d := draft{
		rollout: r, recipient: c, now: now,
		items: make([]specifier.Item, 0, w.Count), versions: make(map[string]*selection, len(c.versions)),
		tried: map[string]map[specifier.Shape]bool{},
	}
	for endpoint := range w.Endpoints {
		if !d.add(endpoint) {
			c.withhold(d.cluster.Source.Name)
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
	c.versions, c.denied, c.samples = d.versions, d.denied, samples
	r.Pace.Sent(now, id, spec)
	r.ledger.Sent(now, id, spec.Serial)
	return spec, d.votes
}

// NoSpecifier records that a checker gets no specifier, and so lacks nothing.
func (r *Rollout) NoSpecifier(id string) {
	r.Pace.Skip(id)
	if c := r.recipients[id]; c != nil {
		c.withheld = nil
	}
}

// withhold records that a checker gets only a part of a cluster. Endpoints of one cluster
// mostly come together.
func (c *recipient) withhold(cluster string) {
	if n := len(c.withheld); n == 0 || c.withheld[n-1] != cluster {
		c.withheld = append(c.withheld, cluster)
	}
}

// draft is an unfinished specifier.
type draft struct {
	rollout   *Rollout
	recipient *recipient
	now       time.Time
	items     []specifier.Item
	versions  map[string]*selection               // the checker's part of each cluster
	tried     map[string]map[specifier.Shape]bool // clusters on trial, with the shapes in the checker's share
	denied    []string                            // clusters that it may try later
	retell    bool
	votes     []VoteChange

	// State of the current cluster; its endpoints mostly come together.
	cluster           *catalog.Cluster
	history           *history
	previous, current *selection // before is nil if the checker had no endpoint of the cluster
	shapes            map[specifier.Shape]bool
}

// add adds an endpoint as far as the checker may have it. It reports whether the checker gets
// its present version in full.
func (d *draft) add(id health.EndpointID) bool {
	k, index := d.rollout.lookup.Endpoint(id)
	if k != d.cluster {
		d.turnTo(k)
	}
	hash, sent := k.Hashes[index], true
	if d.current.cluster != k || len(d.current.withheld) > 0 {
		index, sent = d.history.sent(d.current, hash)
	}
	if d.previous != nil && !d.previous.equal(d.current) {
		d.compare(id, hash, index, sent)
	}
	if !sent {
		return false
	}
	d.items = append(d.items, specifier.Item{Cluster: d.current.cluster.Checked, Endpoint: index, ID: id})
	if d.shapes != nil {
		d.shapes[d.current.cluster.Shapes[index]] = true
	}
	if _, sample := d.recipient.samples[id]; sample {
		d.retell = true // its earlier reported votes did not count
	}
	return d.current.cluster == k
}

// compare drops the checker's votes on an endpoint if it now gets another version, or
// none.
func (d *draft) compare(id health.EndpointID, hash health.Hash, index int, sent bool) {
	_, had := d.history.sent(d.previous, hash)
	switch {
	case had && !sent:
		d.votes = append(d.votes, VoteChange{Endpoint: id, Unassign: true})
	case !had && sent:
		d.votes = append(d.votes, VoteChange{Endpoint: id, Unassign: true, Assign: true})
	case had && d.history.differs(d.previous.cluster, d.current.cluster, index):
		d.votes = append(d.votes, VoteChange{Endpoint: id, Assign: true})
	}
}

// turnTo makes a cluster the current one.
func (d *draft) turnTo(k *catalog.Cluster) {
	name := k.Source.Name
	d.cluster, d.history, d.previous = k, d.rollout.histories[name], d.recipient.versions[name]
	if d.current = d.versions[name]; d.current == nil {
		d.current = d.choose(name)
		d.versions[name] = d.current
	}
	d.shapes = d.tried[name]
}

// choose decides the checker's part of a cluster.
func (d *draft) choose(name string) *selection {
	present := d.history.present
	if d.rollout.ledger.Proven(d.recipient.build, name) {
		delete(d.history.stable, d.recipient.build)
		if previous := d.previous; previous != nil && previous.cluster == present && len(previous.withheld) == 0 {
			return previous
		}
		return &selection{cluster: present}
	}
	if d.rollout.mayTry(d.now, d.recipient, name) {
		d.tried[name] = map[specifier.Shape]bool{}
		return &selection{cluster: present}
	}
	d.denied = append(d.denied, name)
	return d.rollout.usable(d.history, d.recipient)
}

// maxSamples bounds the number of endpoints that a canary gets beyond its share of a cluster.
const maxSamples = 100

// addSamples adds one endpoint of each shape on trial that the checker's share lacks.
// Its votes on them do not count.
func (d *draft) addSamples() map[health.EndpointID]struct{} {
	var samples map[health.EndpointID]struct{}
	r, c := d.rollout, d.recipient
	for _, name := range r.ledger.Trials(c.ID) {
		k, seen, count := r.histories[name].present, d.tried[name], 0
		if !c.Abilities.Has(k.Checked.Needs...) {
			r.ledger.Withdraw(d.now, name) // its endpoints have moved away
			continue
		}
		if seen == nil {
			seen = map[specifier.Shape]bool{}
		}
		for i, shape := range k.Shapes {
			if seen[shape] || r.ledger.ProvenShape(c.build, shape) || count == maxSamples {
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
