package coordinator

import (
	"time"

	"hdsd/canary"
	"hdsd/coordinator/catalog"
	"hdsd/hds/specifier"
	"hdsd/health"
)

// brief is a specifier in the making.
type brief struct {
	core    *core
	checker *recipient
	now     time.Time
	items   []specifier.Item
	given   map[string]*given                // what it has of each cluster
	tried   map[string]map[canary.Shape]bool // of the clusters on trial, what is in its share
	denied  []string                         // clusters that it might try later
	retell  bool

	// Of the cluster at hand; the endpoints of one come mostly together.
	cluster       *catalog.Cluster
	lineage       *lineage
	before, after *given // nil before: it had no endpoint of it to check
	shapes        map[canary.Shape]bool
}

// instruct gives a checker what it has to check now.
func (c *core) instruct(now time.Time, id string) {
	work, ok := c.fleet.Work(id)
	known := c.recipients[id]
	if known != nil {
		known.withheld = nil
	}
	if !ok {
		return
	}
	for _, endpoint := range work.Ended {
		c.judge.Unassign(now, endpoint, id)
	}
	b := brief{
		core: c, checker: known, now: now,
		items: make([]specifier.Item, 0, work.Count), given: make(map[string]*given, len(known.given)),
		tried: map[string]map[canary.Shape]bool{},
	}
	for endpoint := range work.Endpoints {
		if !b.add(endpoint) {
			known.hold(b.cluster.Source.Name)
		}
	}
	for _, endpoint := range work.Handovers {
		b.add(endpoint)
	}
	extra := b.samples()
	spec := specifier.Build(b.items, c.timing.report)
	c.serial++
	spec.Serial, spec.Retell = c.serial, b.retell
	known.given, known.denied, known.extra = b.given, b.denied, extra
	c.metrics.rebuilds.Inc()
	c.canary.Sent(now, id, spec.Serial)
	c.hds.Assign(id, spec)
}

// add takes an endpoint of the plan, as far as the checker may have it, and tells
// whether that is as it is now. The judge begins anew with a pair exactly where
// what is sent of it differs.
func (b *brief) add(id health.EndpointID) bool {
	cluster, index := b.core.rulings.At(id)
	if cluster != b.cluster {
		b.turn(cluster)
	}
	hash, sent := cluster.Hashes[index], true
	if b.after.cluster != cluster || len(b.after.withheld) > 0 {
		index, sent = b.lineage.sent(b.after, hash)
	}
	if b.before != nil && !b.before.same(b.after) {
		b.compare(id, hash, index, sent)
	}
	if !sent {
		return false
	}
	b.items = append(b.items, specifier.Item{Cluster: b.after.cluster.Checked, Endpoint: index, ID: id})
	if b.shapes != nil {
		b.shapes[b.after.cluster.Shapes[index]] = true
	}
	if _, was := b.checker.extra[id]; was {
		b.retell = true // its votes were told already, and counted for nothing
	}
	return b.after.cluster == cluster
}

// compare has the judge forget what the checker said of an endpoint where it is
// sent another or none.
func (b *brief) compare(id health.EndpointID, hash health.Hash, index int, sent bool) {
	_, had := b.lineage.sent(b.before, hash)
	judge, checker := b.core.judge, b.checker.ID
	switch {
	case had && !sent:
		judge.Unassign(b.now, id, checker)
	case !had && sent:
		judge.Unassign(b.now, id, checker)
		judge.Assign(b.now, id, checker)
	case had && b.lineage.differs(b.before.cluster, b.after.cluster, index):
		judge.Assign(b.now, id, checker)
	}
}

// turn goes on with another cluster.
func (b *brief) turn(k *catalog.Cluster) {
	c, name := b.core, k.Source.Name
	b.cluster, b.lineage, b.before = k, c.lineages[name], b.checker.given[name]
	if b.after = b.given[name]; b.after == nil {
		b.after = b.choose(name)
		b.given[name] = b.after
	}
	b.shapes = b.tried[name]
}

// choose decides what the checker has of a cluster.
func (b *brief) choose(name string) *given {
	c, known, l := b.core, b.checker, b.lineage
	if c.canary.Proven(known.build, name) {
		if before := b.before; before != nil && before.cluster == l.present && len(before.withheld) == 0 {
			return before
		}
		return &given{cluster: l.present}
	}
	if c.mayTry(b.now, known, name) {
		b.tried[name] = map[canary.Shape]bool{}
		return &given{cluster: l.present}
	}
	b.denied = append(b.denied, name)
	return c.usable(l, known)
}

// mayTry tells whether a checker is the canary of a cluster, which it becomes
// where that is possible. Nothing is tried while hdsd settles.
func (c *core) mayTry(now time.Time, known *recipient, name string) bool {
	before := known.given[name]
	return !c.fleet.Settling() && c.canary.Try(now, known.ID, name, before != nil && before.cluster != nil)
}

// maxSamples bounds how many endpoints a canary is sent beyond its share of a
// cluster.
const maxSamples = 100

// samples adds an endpoint of each shape on trial that is not in the checker's
// share. Nobody counts its votes on them.
func (b *brief) samples() map[health.EndpointID]struct{} {
	var extra map[health.EndpointID]struct{}
	c, known := b.core, b.checker
	for _, name := range c.canary.Trials(known.ID) {
		k, seen, count := c.rulings.Cluster(name), b.tried[name], 0
		if !known.Abilities.Has(k.Checked.Needs...) {
			c.canary.Withdraw(b.now, name) // its endpoints have moved away
			continue
		}
		if seen == nil {
			seen = map[canary.Shape]bool{}
		}
		for i, shape := range k.Shapes {
			if seen[shape] || c.canary.ProvenShape(known.build, name, shape) || count == maxSamples {
				continue
			}
			seen[shape] = true
			count++
			id, _ := c.rulings.Find(k.Hashes[i])
			b.items = append(b.items, specifier.Item{Cluster: k.Checked, Endpoint: i, ID: id})
			if extra == nil {
				extra = map[health.EndpointID]struct{}{}
			}
			extra[id] = struct{}{}
		}
	}
	return extra
}

// hold notes that a cluster, or some of it, is held back; those of one cluster
// come mostly together.
func (r *recipient) hold(name string) {
	if n := len(r.withheld); n == 0 || r.withheld[n-1] != name {
		r.withheld = append(r.withheld, name)
	}
}
