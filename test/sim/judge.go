package sim

import (
	"fmt"

	"hdsd/aggregate"
	"hdsd/health"
	"hdsd/test/sim/truth"
)

// patience is how many steps after a true change a verdict may lag behind
// before it counts as wrong.
const patience = 3 * round

// judge compares verdicts with the truth.
type judge struct {
	world *truth.World

	looked, wrong int         // endpoint-rounds; wrong: down though truly up
	falseDowns    []string    // changes to down of what is truly up
	flaps         []string    // changes other than the first that the truth did not make
	detected      map[int]int // by outage: steps until it was seen
	latest        map[int]int // by endpoint: the step of its latest change
}

func (j *judge) changed(step int, c aggregate.Change) {
	endpoint := int(c.Endpoint)
	up, since := j.world.Up(step, endpoint)
	late := step-since <= patience && since > 0
	before := j.latest[endpoint]
	j.latest[endpoint] = step
	line := fmt.Sprintf("step %d: endpoint %d %s -> %s: %s", step, endpoint, c.From, c.To, c.Reason)
	switch {
	case c.To.Down() && !up:
		if _, ok := j.detected[endpoint]; !ok {
			j.detected[endpoint] = step - since
		}
		if c.From.Down() {
			j.flaps = append(j.flaps, line)
		}
		return
	case c.To.Down() && !late:
		j.falseDowns = append(j.falseDowns, line)
	case c.To.Up() && up && since > before: // however late
		return
	}
	if c.From != health.Unknown {
		j.flaps = append(j.flaps, line)
	}
}

// look judges every verdict once a round.
func (j *judge) look(step int, verdicts []health.Verdict) {
	for i, v := range verdicts {
		j.looked++
		up, since := j.world.Up(step, i)
		if v.Status.Down() && up && (since == 0 || step-since > patience) {
			j.wrong++
		}
	}
}

// result is what a run comes to.
type result struct {
	rate             float64 // of endpoint-rounds that were falsely down
	falseDowns       []string
	flaps            []string
	outages, missed  int
	meanDelay, worst float64 // rounds until an outage was seen
	moved            int
}

func (j *judge) result() result {
	r := result{rate: float64(j.wrong) / float64(max(1, j.looked)), falseDowns: j.falseDowns, flaps: j.flaps}
	sum := 0
	for endpoint := range j.world.Outages() {
		r.outages++
		delay, ok := j.detected[endpoint]
		if !ok {
			r.missed++
			continue
		}
		sum += delay
		r.worst = max(r.worst, float64(delay)/round)
	}
	r.meanDelay = float64(sum) / round / float64(max(1, r.outages-r.missed))
	return r
}

func (r result) String() string {
	return fmt.Sprintf("false-down rate %.1e, false downs %d, flaps %d, outages %d, missed %d, delay mean %.2f worst %.1f rounds, moved %d",
		r.rate, len(r.falseDowns), len(r.flaps), r.outages, r.missed, r.meanDelay, r.worst, r.moved)
}
