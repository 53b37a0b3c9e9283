package aggregate

import (
	"fmt"
	"time"

	"hdsd/health"
)

// MassFailure reports that one round is about to take more than half of a
// cluster down, although some votes and zones say up; or that this is over.
type MassFailure struct {
	Cluster string
	Over    bool
	Reason  string // as "5 of 8 endpoints down in one round, and zones do not agree"
}

// massPhase says how far a mass failure has come.
type massPhase uint8

const (
	noMass  massPhase = iota
	holding           // contested downs wait
	waited            // they have waited for long enough
)

// mass is what is kept of a cluster for mass failures.
type mass struct {
	phase   massPhase
	until   tick                // when holding ends
	recent  int                 // contested downs of the present round
	since   time.Duration       // when that round began
	waiting int                 // endpoints whose down waits
	waited  []health.EndpointID // these, and some that do not wait any more
	asking  []contested         // of this flush
}

// contested is a down that somebody contradicts.
type contested struct {
	id health.EndpointID
	to health.Status
}

// smallestMass is how many endpoints are many.
const smallestMass = 2

// contests tells whether a down is one that waits in a mass failure: some of the
// votes that count say up, and it is not so that several zones say down and
// none says up.
func (a *Aggregator) contests(e *endpoint, t *tally) bool {
	if t.up == 0 {
		return false
	}
	ups, downs := 0, 0
	for _, z := range a.byZone(e, believed) {
		switch z.majority() {
		case up:
			ups++
		case down:
			downs++
		}
	}
	return ups > 0 || downs < 2
}

// ask has a down wait for the end of the flush, which shows how many there are.
func (a *Aggregator) ask(id health.EndpointID, e *endpoint, to health.Status) {
	m := &a.clusters.at(e.cluster).mass
	if len(m.asking) == 0 {
		a.asking = append(a.asking, e.cluster)
	}
	m.asking = append(m.asking, contested{id, to})
}

// answer lets contested downs happen, or has them wait.
func (a *Aggregator) answer(changes []Change) []Change {
	for i := 0; i < len(a.asking); i++ {
		k := a.clusters.at(a.asking[i])
		list := k.mass.asking
		k.mass.asking = nil
		p := a.policyOf(&a.endpoints[list[0].id])
		a.countRound(k, p)
		all := k.mass.recent + len(list)
		if k.mass.phase == noMass && all >= smallestMass && 2*all > k.size {
			a.raise(a.asking[i], k, p, all)
		}
		for _, c := range list {
			e := &a.endpoints[c.id]
			if k.mass.phase == holding {
				if e.flags&restrained == 0 {
					e.flags |= restrained
					k.mass.waiting++
					k.mass.waited = append(k.mass.waited, c.id)
				}
				continue
			}
			k.mass.recent++
			var t tally
			a.tally(e, &t)
			changes = append(changes, a.change(c.id, e, c.to, &t))
			a.unrestrain(e)
		}
	}
	a.asking = a.asking[:0]
	return changes
}

// countRound begins another round where the one before is over.
func (a *Aggregator) countRound(k *cluster, p *policy) {
	if round := 2 * time.Duration(p.round) * time.Millisecond; a.clock.elapsed-k.mass.since > round {
		k.mass.recent, k.mass.since = 0, a.clock.elapsed
	}
}

func (a *Aggregator) raise(number uint32, k *cluster, p *policy, all int) {
	k.mass.phase, k.mass.until = holding, a.clock.in(a.clock.elapsed, p.MassHold)
	a.deadlines.add(k.mass.until, pair{health.EndpointID(number), ofCluster})
	a.effects.MassFailures = append(a.effects.MassFailures, MassFailure{
		Cluster: a.clusters.all[number].key,
		Reason:  fmt.Sprintf("%d of %d endpoints would go down in one round, and zones do not agree that they are", all, k.size),
	})
}

// endMass ends the wait of a cluster.
func (a *Aggregator) endMass(number uint32, now tick) {
	if int(number) >= len(a.clusters.all) {
		return
	}
	m := &a.clusters.at(number).mass
	if m.phase != holding || m.until != now {
		return
	}
	m.phase = waited
	for _, id := range m.waited {
		if e := a.known(id); e != nil && e.flags&restrained != 0 {
			a.mark(id, e)
		}
	}
	m.waited = nil
}

// unrestrain has the down of an endpoint wait no longer.
func (a *Aggregator) unrestrain(e *endpoint) {
	if e.flags&restrained == 0 {
		return
	}
	e.flags &^= restrained
	a.clusters.at(e.cluster).mass.waiting--
	a.calmed(e.cluster)
}

// calmed ends an alarm when nothing waits any more and at most half is down.
func (a *Aggregator) calmed(number uint32) {
	k := a.clusters.at(number)
	if k.mass.phase == noMass || k.mass.waiting > 0 || k.mass.phase == waited && k.mostlyDown() {
		return
	}
	k.mass.phase, k.mass.recent, k.mass.waited = noMass, 0, nil
	a.effects.MassFailures = append(a.effects.MassFailures, MassFailure{
		Cluster: a.clusters.all[number].key, Over: true, Reason: fmt.Sprintf("%d of %d endpoints are down", k.down, k.size),
	})
}

func (a *Aggregator) waitsUntil(e *endpoint) string {
	return a.clock.time(a.clusters.at(e.cluster).mass.until).UTC().Format(time.TimeOnly) + " UTC"
}
