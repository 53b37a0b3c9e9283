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
	end       tick                // when holding ends
	recent    int                 // contested downs that took effect in this round
	start     time.Duration       // start of this round
	waiting   int                 // number of endpoints that are held back
	heldBack  []health.EndpointID // held back endpoints, and some former ones
	contested []contested         // in this step
}

// contested is a down that some votes contradict.
type contested struct {
	id     health.EndpointID
	status health.Status
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
	byCluster map[uint32]*massFailure // by number of the cluster
	asking    []uint32                // clusters with contested downs in this step
}

func newMassFailures(c *clock, d *deadlines, s *settings, r *roster, k *clusters, e *Effects) massFailures {
	return massFailures{clock: c, deadlines: d, settings: s, roster: r, clusters: k, effects: e, byCluster: map[uint32]*massFailure{}}
}

// contest leaves a down to resolve, which knows their number.
func (m *massFailures) contest(id health.EndpointID, e *endpoint, status health.Status) {
	x := m.byCluster[e.cluster]
	if x == nil {
		x = &massFailure{}
		m.byCluster[e.cluster] = x
	}
	if len(x.contested) == 0 {
		m.asking = append(m.asking, e.cluster)
	}
	x.contested = append(x.contested, contested{id, status})
}

// resolve yields the contested downs that take effect, and holds the others back. The
// caller changes the status of each before it asks for the next.
func (m *massFailures) resolve() iter.Seq[contested] {
	return func(yield func(contested) bool) {
		for _, cluster := range m.asking {
			x := m.byCluster[cluster]
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

// count begins a new round at the end of this one. It begins a mass failure when the contested
// downs of the round are too many.
func (m *massFailures) count(cluster uint32, x *massFailure, list []contested) {
	p := m.settings.ofEndpoint(m.roster.row(list[0].id))
	if m.clock.elapsed-x.start > 2*p.roundTime() {
		x.recent, x.start = 0, m.clock.elapsed
	}
	failing, size := x.recent+len(list), m.clusters.get(cluster).size
	if x.phase != noMassFailure || failing < smallestMass || 2*failing <= size {
		return
	}
	x.phase, x.end = holding, m.clock.tickAfter(p.MassHold)
	m.deadlines.add(x.end, deadline{health.EndpointID(cluster), dueMassFailure})
	m.effects.MassFailures = append(m.effects.MassFailures, MassFailure{
		Cluster: m.clusters.key(cluster),
		Reason:  fmt.Sprintf("%d of %d endpoints would go down in one round, and zones do not agree that they are", failing, size),
	})
}

func (m *massFailures) holdBack(x *massFailure, id health.EndpointID) {
	if e := m.roster.row(id); !e.has(isHeldBack) {
		e.set(isHeldBack)
		x.waiting++
		x.heldBack = append(x.heldBack, id)
	}
}

// due ends the wait of a cluster's downs.
func (m *massFailures) due(cluster uint32, now tick) {
	x := m.byCluster[cluster]
	if x == nil || x.phase != holding || x.end != now {
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
	m.byCluster[e.cluster].waiting--
	m.check(e.cluster)
}

// check ends a mass failure when no endpoint is held back. After the wait, it also
// requires that at most half of the cluster is down.
func (m *massFailures) check(cluster uint32) {
	x := m.byCluster[cluster]
	if x == nil || x.phase == noMassFailure {
		return
	}
	k := m.clusters.get(cluster)
	if x.waiting > 0 || x.phase == waitedOut && k.mostlyDown() {
		return
	}
	x.phase, x.recent, x.heldBack = noMassFailure, 0, nil
	m.effects.MassFailures = append(m.effects.MassFailures, MassFailure{
		Cluster: m.clusters.key(cluster), Over: true, Reason: fmt.Sprintf("%d of %d endpoints are down", k.down, k.size),
	})
}

// forget drops the state of a cluster that is gone.
func (m *massFailures) forget(cluster uint32) { delete(m.byCluster, cluster) }

// untilText returns the end of the wait of a cluster's downs, in words.
func (m *massFailures) untilText(cluster uint32) string {
	return m.clock.time(m.byCluster[cluster].end).UTC().Format(time.TimeOnly) + " UTC"
}
