package sim

import (
	"math/rand/v2"

	"hdsd/health"
	"hdsd/test/sim/truth"
)

// Time goes in steps of 100 ms; a round, which is the interval of checks and
// of reports, is ten.
const round = 10

const (
	unhealthyThreshold = 2
	outage             = 2 // rounds from an observer's restart to its return
)

// observer is one checking Envoy.
type observer struct {
	number int
	world  *truth.World
	random *rand.Rand

	running   bool
	connected bool
	hosts     map[health.EndpointID]*host
	order     [round][]*host // by the step of the round in which they are probed
	turn      int            // step of the round in which it reports
	sent      map[health.EndpointID]health.Status
}

type host struct {
	endpoint health.EndpointID
	status   health.Status
	failures int
	gone     bool
}

func newObserver(number int, world *truth.World, random *rand.Rand) *observer {
	return &observer{
		number: number, world: world, random: random, running: true, connected: true,
		hosts: map[health.EndpointID]*host{}, turn: random.IntN(round),
		sent: map[health.EndpointID]health.Status{},
	}
}

// assign takes a specifier: hosts that stay keep their state.
func (o *observer) assign(add, remove []health.EndpointID) {
	for _, id := range remove {
		if h := o.hosts[id]; h != nil {
			h.gone = true
			delete(o.hosts, id)
		}
	}
	for _, id := range add {
		if o.hosts[id] != nil {
			continue
		}
		h := &host{endpoint: id, status: health.Unhealthy}
		o.hosts[id] = h
		slot := o.random.IntN(round) // the initial jitter
		o.order[slot] = append(o.order[slot], h)
	}
	clear(o.sent) // a new specifier is answered in full
}

// restart forgets everything.
func (o *observer) restart() {
	o.hosts = map[health.EndpointID]*host{}
	o.order = [round][]*host{}
	clear(o.sent)
}

// probe probes what is due, as Envoy does: the first success makes healthy, as
// does the threshold's worth of failures make unhealthy.
func (o *observer) probe(step int) {
	if !o.running {
		return
	}
	slot := step % round
	kept := o.order[slot][:0]
	for _, h := range o.order[slot] {
		if h.gone {
			continue
		}
		kept = append(kept, h)
		if o.world.Probe(step, o.number, int(h.endpoint)) {
			h.status, h.failures = health.Healthy, 0
			continue
		}
		if h.failures++; h.failures >= unhealthyThreshold {
			h.status = health.Timeout
		}
	}
	o.order[slot] = kept
}

// report gives what changed since the report before.
func (o *observer) report() []health.Vote {
	var votes []health.Vote
	for _, list := range o.order {
		for _, h := range list {
			if !h.gone && o.sent[h.endpoint] != h.status {
				o.sent[h.endpoint] = h.status
				votes = append(votes, health.Vote{Endpoint: h.endpoint, Status: h.status})
			}
		}
	}
	return votes
}
