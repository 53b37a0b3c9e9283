package recording

import (
	"github.com/cespare/xxhash/v2"

	"hdsd/aggregate"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/publish"
)

// digest computes a checksum of effects in their order. It leaves out texts, messages and shapes, since they
// depend on secrets.
type digest struct {
	hash    *xxhash.Digest
	effects uint64 // number of effects of the current event
	out     output // the current effect
}

func newDigest() digest { return digest{hash: xxhash.New()} }

// sum returns the digest of all effects so far.
func (d *digest) sum() uint32 { return uint32(d.hash.Sum64()) }

// add adds an effect.
func (d *digest) add(e machine.Effect) {
	if _, ok := e.(machine.TickHandled); ok {
		return // each tick has it
	}
	d.out.bytes = d.out.bytes[:0]
	d.out.effect(e)
	_, _ = d.hash.Write(d.out.bytes) // never fails
	d.effects++
}

// effect encodes an effect for the digest. The methods below are for the digest only, too.
func (o *output) effect(e machine.Effect) {
	switch e := e.(type) {
	case machine.SpecifierMade:
		o.byte(1)
		o.text(e.Checker)
		o.uint(e.Specifier.Serial)
		o.bool(e.Specifier.Retell)
		o.ids(e.Specifier.Order)
	case machine.CheckerJoined:
		o.byte(2)
		o.text(e.Checker.ID)
	case machine.FleetChanged:
		o.byte(3)
		o.fleet(e.Effects)
	case machine.Published:
		o.byte(4)
		o.change(e.Change)
	case machine.Logged:
		o.byte(12)
		o.entry(e.Entry)
	case machine.VotesJudged:
		o.byte(5)
		o.findings(e.Effects)
	case machine.TrialsChanged:
		o.byte(6)
		for i := range e.Events {
			v := &e.Events[i]
			o.byte(byte(v.Kind))
			o.text(v.Cluster)
			o.text(v.Checker)
		}
	case machine.ChangesLeftOut:
		o.byte(7)
		o.uint(uint64(e.Count))
	case machine.ClustersChanged:
		o.byte(8)
		o.texts(e.Removed)
		for _, k := range e.Changed {
			o.text(k.Source.Name)
		}
		o.uint(uint64(len(e.Previous)))
		o.bool(e.Conclusive)
	case machine.ClustersApplied:
		o.byte(9)
		o.bool(e.InitialHealthChanged)
		o.bool(e.NothingChecked)
		o.uint(uint64(e.PreviouslyChecked))
	case machine.EndpointsChanged:
		o.byte(10)
		o.text(e.Cluster)
	case machine.SourcesAnswered:
		o.byte(11)
	case machine.ForgetDue:
		o.byte(13)
	case machine.PauseEnded:
		o.byte(14)
		o.int(int64(e.Duration))
	}
}

func (o *output) nanos(n int64) { o.fixed(uint64(n)) }

// unordered encodes a map as the sum of the checksums of its entries.
func unordered[K comparable, V any](o *output, entries map[K]V, encode func(*output, K)) {
	o.uint(uint64(len(entries)))
	var sum uint64
	var entry output
	for key := range entries {
		entry.bytes = entry.bytes[:0]
		encode(&entry, key)
		sum += xxhash.Sum64(entry.bytes)
	}
	o.fixed(sum)
}

func (o *output) ids(ids []health.EndpointID) {
	o.uint(uint64(len(ids)))
	for _, id := range ids {
		o.uint(uint64(id))
	}
}

func (o *output) fleet(e *fleet.Effects) {
	o.bool(e.Settled)
	o.bool(e.Planned)
	o.uint(uint64(e.Moves))
	o.ids(e.Stranded)
	o.ids(e.Checkable)
	for i := range e.Events {
		o.byte(byte(e.Events[i].Kind))
		o.texts(e.Events[i].Checkers)
	}
	for i := range e.Votes {
		v := &e.Votes[i]
		o.text(v.Checker)
		o.bool(v.Connected != nil)
		o.bool(v.Lost)
		o.ids(v.Unassign)
		o.ids(v.Assign)
	}
	o.texts(e.Specify)
	o.texts(e.Silent)
	o.texts(e.Newcomers)
	o.texts(e.GivenUp)
}

func (o *output) findings(e *aggregate.Effects) {
	for i := range e.Doubts {
		d := &e.Doubts[i]
		o.texts([]string{d.Checker, d.From, d.To})
		o.bool(d.Doubted)
	}
	for i := range e.Blindness {
		o.text(e.Blindness[i].Checker)
		o.bool(e.Blindness[i].Blind)
	}
	for i := range e.MassFailures {
		o.text(e.MassFailures[i].Cluster)
		o.bool(e.MassFailures[i].Over)
	}
	for i := range e.Divided {
		o.locality(&e.Divided[i].Zone)
		o.bool(e.Divided[i].Over)
	}
	o.texts(e.Crossed)
}

func (o *output) change(c *publish.Change) {
	o.health(c.Health)
	u := &c.Update
	for i := range u.Assignments {
		a := &u.Assignments[i]
		o.text(a.Name)
		o.bool(a.Overruled)
		for _, locality := range a.IDs {
			for _, ids := range locality {
				o.ids(ids)
			}
		}
	}
	o.texts(u.RemovedAssignments)
	for i := range u.Clusters {
		o.text(u.Clusters[i].Name)
		o.bool(u.Clusters[i].Checked)
	}
	o.texts(u.RemovedClusters)
	o.health(c.Withdrawn)
	for i := range c.Zones {
		o.locality(&c.Zones[i].Zone)
		o.health(c.Zones[i].Set)
		o.ids(c.Zones[i].Unset)
	}
}

func (o *output) entry(e *log.Entry) {
	if o.bool(e.Freeze != nil); e.Freeze != nil {
		o.bool(e.Freeze.After != nil)
		o.text(e.Freeze.By)
	}
	if o.bool(e.Held != nil); e.Held != nil {
		unordered(o, e.Held.Held, func(o *output, hash health.Hash) {
			o.fixed(uint64(hash))
			o.byte(byte(e.Held.Held[hash]))
		})
	}
	for i := range e.Overrides {
		c := &e.Overrides[i]
		o.byte(byte(c.Kind))
		o.endpoint(&c.Override.Scope)
		o.byte(byte(c.Override.Status))
		o.text(c.By)
	}
	if o.bool(e.Trust != nil); e.Trust != nil {
		o.text(e.Trust.Checker)
		o.bool(e.Trust.After != nil)
	}
	o.texts(e.Clusters)
	unordered(o, e.Voted, func(o *output, hash health.Hash) {
		o.fixed(uint64(hash))
		if v := e.Voted[hash]; v != nil {
			o.byte(byte(v.Status))
		}
	})
	for i := range e.Transitions {
		o.transition(&e.Transitions[i])
	}
	o.hashes(e.Unvoted)
	o.texts(e.TakenOver)
	o.texts(e.GivenBack)
	o.texts(e.Removed)
	unordered(o, e.Plan, func(o *output, checker string) {
		o.text(checker)
		o.hashes(e.Plan[checker])
	})
	unordered(o, e.Established, func(o *output, checker string) {
		o.text(checker)
		o.bool(e.Established[checker] != nil)
	})
	o.uint(uint64(len(e.Trials)))
	unordered(o, e.Penalties, func(o *output, hash health.Hash) {
		o.fixed(uint64(hash))
		if p := e.Penalties[hash]; p != nil {
			o.float(p.Value)
			o.nanos(p.At.UnixNano())
			o.bool(p.Suppressed)
		}
	})
	for i := range e.Events { // nothing if there are none: earlier recordings have no events
		v := &e.Events[i]
		o.nanos(v.Time.UnixNano())
		o.uint(uint64(v.Kind))
		o.endpoint(&health.Endpoint{Cluster: v.Cluster, Locality: v.Locality, Address: v.Address})
		o.text(v.Checker)
	}
}

func (o *output) health(list []publish.Health) {
	o.uint(uint64(len(list)))
	for i := range list {
		o.uint(uint64(list[i].ID))
		o.byte(byte(list[i].Status))
	}
}

func (o *output) transition(t *health.Transition) {
	o.nanos(t.Time.UnixNano())
	o.endpoint(&t.Endpoint)
	o.byte(byte(t.From))
	o.byte(byte(t.To))
	for i := range t.Observations {
		v := &t.Observations[i]
		o.text(v.Checker)
		o.byte(byte(v.Status))
		o.uint(uint64(v.HTTPStatusCode))
		o.nanos(v.Time.UnixNano())
		o.bool(v.Disbelieved != "")
	}
}
