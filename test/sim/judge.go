package sim

import (
	"fmt"
	"math"
	"slices"

	"hdsd/aggregate"
	"hdsd/health"
	"hdsd/test/sim/truth"
)

// patience is how many steps a verdict may lag behind a true change before it counts as
// wrong.
const patience = Patience * round

// Patience is the same in rounds.
const Patience = 3

// examples is how many wrong changes a judge keeps as text.
const examples = 5

// judge compares verdicts with the truth.
type judge struct {
	world *truth.World

	looked, wrong     int         // endpoint-rounds; wrong: down while truly up
	falseDowns, flaps int         // changes to down of endpoints that are truly up; further changes without one of the truth
	seen              []bool      // by outage
	delays            []int       // steps from the start of an outage to the change that shows it
	latest            map[int]int // by endpoint: the step of its latest change
	lines             []string    // the first wrong changes
}

func newJudge(world *truth.World) *judge { return &judge{world: world, latest: map[int]int{}} }

// see records that an outage is seen, and reports whether it is the first time.
func (j *judge) see(outage int) bool {
	for len(j.seen) < len(j.world.Outages()) {
		j.seen = append(j.seen, false)
	}
	first := !j.seen[outage]
	j.seen[outage] = true
	return first
}

func (j *judge) changed(step int, c *aggregate.Change) {
	endpoint := int(c.Endpoint)
	up, since := j.world.Up(step, endpoint)
	late := step-since <= patience && since > 0
	before := j.latest[endpoint]
	j.latest[endpoint] = step
	switch {
	case c.To.Down() && !up:
		if outage, _ := j.world.Down(step, endpoint); j.see(outage) {
			j.delays = append(j.delays, step-since)
		}
		if !c.From.Down() {
			return
		}
	case c.To.Down() && !late:
		j.falseDowns++
	case c.To.Up() && up && since > before: // however late
		return
	}
	if c.From == health.Unknown {
		return
	}
	j.flaps++
	if len(j.lines) < examples {
		j.lines = append(j.lines, fmt.Sprintf("step %d: endpoint %d %s -> %s: %s", step, endpoint, c.From, c.To, c.Reason))
	}
}

// look judges every verdict once a round.
func (j *judge) look(step int, verdicts []health.Verdict) {
	j.looked += len(verdicts)
	for i := range verdicts {
		if !verdicts[i].Status.Down() {
			continue
		}
		if outage, down := j.world.Down(step, i); down {
			j.see(outage) // the verdict may have been down before
		} else if _, since := j.world.Up(step, i); since == 0 || step-since > patience {
			j.wrong++
		}
	}
}

// Result is the result of a run by one rule.
type Result struct {
	Looked, Wrong int // endpoint-rounds, and those falsely down
	FalseDowns    int // changes to down of endpoints that are truly up
	Flaps         int // changes without one of the truth
	Outages       int
	Missed        int      // outages that were never seen
	Delays        []int    // in steps, of outages that a change showed
	Examples      []string // of false downs and flaps
}

func (j *judge) result() Result {
	r := Result{
		Looked: j.looked, Wrong: j.wrong, FalseDowns: j.falseDowns, Flaps: j.flaps,
		Outages: len(j.world.Outages()), Delays: j.delays, Examples: j.lines,
	}
	r.Missed = r.Outages
	for _, seen := range j.seen {
		if seen {
			r.Missed--
		}
	}
	return r
}

// Rate returns the share of endpoint-rounds that were falsely down.
func (r Result) Rate() float64 { return float64(r.Wrong) / float64(max(1, r.Looked)) }

// Delay returns the mean delay and the quantile of all delays at share, in rounds. It
// sorts them.
func (r Result) Delay(share float64) (mean, most float64) {
	if len(r.Delays) == 0 {
		return 0, 0
	}
	slices.Sort(r.Delays)
	sum := 0
	for _, d := range r.Delays {
		sum += d
	}
	last := int(math.Ceil(share*float64(len(r.Delays)))) - 1
	return float64(sum) / round / float64(len(r.Delays)), float64(r.Delays[max(0, last)]) / round
}

func (r Result) String() string {
	mean, worst := r.Delay(1)
	return fmt.Sprintf("false-down rate %.1e, false downs %d, flaps %d, outages %d, missed %d, delay mean %.2f worst %.1f rounds",
		r.Rate(), r.FalseDowns, r.Flaps, r.Outages, r.Missed, mean, worst)
}
