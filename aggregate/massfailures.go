package aggregate

import (
	"fmt"
	"iter"
	"time"

	"hdsd/health"
)

// MassFailure reports that one round would take more than half of a cluster down
// although some votes and zones say up. It also reports the end of a mass failure.
type MassFailure struct {
	Cluster string
	Over    bool
	Reason  string // for example "5 of 8 endpoints would go down in one round, and zones do not agree that they are"
}

// massPhase is the state of a mass failure.
type massPhase uint8

const (
	noMassFailure massPhase = iota
	holding                 // contested downs wait
	waitedOut               // contested downs have waited for long enough
)

// massFailure is the state of a cluster with contested downs.
type massFailure struct {
	phase     massPhase
	until     tick                // when holding ends
	recent    int                 // contested downs that took effect in the present round
	since     time.Duration       // when the present round began
	waiting   int                 // number of endpoints that are held back
	heldBack  []health.EndpointID // endpoints that are held back, and some that no longer are
	contested []contested         // in this step
}

// contested is a down that some votes contradict.
type contested struct {
	id health.EndpointID
	to health.Status
}

// smallestMass is the least number of endpoints in a mass failure.
const smallestMass = 2

// massFailures holds downs back when one round would take more than half of a cluster
// down and the zones do not agree.
type massFailures struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	clusters  *clusters
	effects   *Effects
	all       map[uint32]*massFailure // by number of the cluster
	asking    []uint32                // clusters with contested downs in this step
}

func newMassFailures(c *clock, d *deadlines, s *settings, r *roster, k *clusters, e *Effects) massFailures {
	return massFailures{clock: c, deadlines: d, settings: s, roster: r, clusters: k, effects: e, all: map[uint32]*massFailure{}}
}

// contest leaves a down to resolve, which knows how many there are.
func (m *massFailures) contest(id health.EndpointID, e *endpoint, to health.Status) {
	x := m.all[e.cluster]
	if x == nil {
		x = &massFailure{}
		m.all[e.cluster] = x
	}
	if len(x.contested) == 0 {
		m.asking = append(m.asking, e.cluster)
	}
	x.contested = append(x.contested, contested{id, to})
}

// resolve yields the contested downs that take effect, and holds the others back. The
// caller changes the status of each before it asks for the next.
func (m *massFailures) resolve() iter.Seq[contested] {
	return func(yield func(contested) bool) {
		for _, cluster := range m.asking {
			x := m.all[cluster]
			list := x.contested
			x.contested = nil
			m.count(cluster, x, list)
			for _, c := range list {
				if x.phase == holding {
					m.holdBack(x, c.id)
					continue
				}
				x.recent++
				if !yield(c) {
					return
				}
			}
		}
		m.asking = m.asking[:0]
	}
}

// count begins a new round when the present one is over. It begins a mass failure
// when the contested downs of the round are too many.
func (m *massFailures) count(cluster uint32, x *massFailure, list []contested) {
	p := m.settings.of(m.roster.at(list[0].id))
	if m.clock.elapsed-x.since > 2*p.roundTime() {
		x.recent, x.since = 0, m.clock.elapsed
	}
	all, size := x.recent+len(list), m.clusters.at(cluster).size
	if x.phase != noMassFailure || all < smallestMass || 2*all <= size {
		return
	}
	x.phase, x.until = holding, m.clock.in(p.MassHold)
	m.deadlines.add(x.until, deadline{health.EndpointID(cluster), dueMassFailure})
	m.effects.MassFailures = append(m.effects.MassFailures, MassFailure{
		Cluster: m.clusters.key(cluster),
		Reason:  fmt.Sprintf("%d of %d endpoints would go down in one round, and zones do not agree that they are", all, size),
	})
}

func (m *massFailures) holdBack(x *massFailure, id health.EndpointID) {
	if e := m.roster.at(id); !e.has(isHeldBack) {
		e.set(isHeldBack)
		x.waiting++
		x.heldBack = append(x.heldBack, id)
	}
}

// due ends the wait of a cluster's downs.
func (m *massFailures) due(cluster uint32, now tick) {
	x := m.all[cluster]
	if x == nil || x.phase != holding || x.until != now {
		return
	}
	x.phase = waitedOut
	for _, id := range x.heldBack {
		if e := m.roster.endpoint(id); e != nil && e.has(isHeldBack) {
			m.roster.mark(id, e)
		}
	}
	x.heldBack = nil
}

// release stops holding back the down of an endpoint.
func (m *massFailures) release(e *endpoint) {
	if !e.has(isHeldBack) {
		return
	}
	e.clear(isHeldBack)
	m.all[e.cluster].waiting--
	m.check(e.cluster)
}

// check ends a mass failure when no endpoint is held back. After the wait, it also
// requires that at most half of the cluster is down.
func (m *massFailures) check(cluster uint32) {
	x := m.all[cluster]
	if x == nil || x.phase == noMassFailure {
		return
	}
	k := m.clusters.at(cluster)
	if x.waiting > 0 || x.phase == waitedOut && k.mostlyDown() {
		return
	}
	x.phase, x.recent, x.heldBack = noMassFailure, 0, nil
	m.effects.MassFailures = append(m.effects.MassFailures, MassFailure{
		Cluster: m.clusters.key(cluster), Over: true, Reason: fmt.Sprintf("%d of %d endpoints are down", k.down, k.size),
	})
}

// forget drops the state of a cluster that is gone.
func (m *massFailures) forget(cluster uint32) { delete(m.all, cluster) }

// until returns a phrase that says until when the downs of a cluster wait.
func (m *massFailures) until(cluster uint32) string {
	return m.clock.time(m.all[cluster].until).UTC().Format(time.TimeOnly) + " UTC"
}
