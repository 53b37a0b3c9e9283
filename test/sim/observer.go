package sim

import (
	"fmt"
	"math/rand/v2"

	"hdsd/health"
	"hdsd/test/sim/truth"
)

// Time advances in steps of 100 ms. A round, the interval of checks and of reports, is
// ten steps.
const round = 10

// absence is how many rounds a restart of an observer takes.
const absence = 2

// observer is one Envoy that checks.
type observer struct {
	number    int
	id        string
	world     *truth.World
	random    *rand.Rand
	threshold int32 // unhealthy_threshold

	running   bool
	connected bool
	streams   int // number of streams so far
	hosts     map[health.EndpointID]*host
	order     [round][]*host // by the step of the round for their probes
	turn      int            // step of the round for its reports
	news      bool           // some host has changed since the last report
}

type host struct {
	endpoint health.EndpointID
	failures int32
	status   health.Status
	reported health.Status
	told     bool // the coordinator has got reported
	gone     bool
}

func newObserver(number int, world *truth.World, random *rand.Rand, threshold int) *observer {
	return &observer{
		number: number, id: checkerName(number), world: world, random: random, running: true, connected: true,
		hosts: map[health.EndpointID]*host{}, turn: random.IntN(round), threshold: int32(threshold),
	}
}

func checkerName(number int) string { return fmt.Sprintf("checker-%03d", number) }

// assign applies a specifier: hosts that stay keep their state.
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
	for _, h := range o.hosts { // a new specifier is answered in full
		h.told = false
	}
	o.news = true
}

// restart forgets everything.
func (o *observer) restart() {
	o.hosts = map[health.EndpointID]*host{}
	o.order = [round][]*host{}
}

// probe probes the hosts that are due, as Envoy does. The first success makes a host
// healthy; threshold failures in a row make it unhealthy.
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
			h.failures = 0
			o.set(h, health.Healthy)
		} else if h.failures++; h.failures >= o.threshold {
			o.set(h, health.Timeout)
		}
	}
	o.order[slot] = kept
}

func (o *observer) set(h *host, s health.Status) {
	if h.status != s {
		h.status, o.news = s, true
	}
}

// report returns the changes since the last report.
func (o *observer) report() []health.Vote {
	if !o.news {
		return nil
	}
	o.news = false
	var votes []health.Vote
	for _, list := range o.order {
		for _, h := range list {
			if !h.gone && (!h.told || h.reported != h.status) {
				h.reported, h.told = h.status, true
				votes = append(votes, health.Vote{Endpoint: h.endpoint, Status: h.status})
			}
		}
	}
	return votes
}
