package assign

import "slices"

// work repairs the plan, starting from the units listed for this step.
type work struct {
	fleet    *fleet
	room     *room
	agenda   *agenda
	squeezer *squeezer
	repairs  *repairer
	pulls    *puller
	balancer *balancer
	rebuilds *rebuilder
	budget   *budget
}

// newWork makes the parts that change the plan, from a Planner's other parts.
func newWork(p *Planner, rankings *rankings, looks *budget) *work {
	pick := &picker{fleet: p.fleet, room: p.room, tally: p.tally, rankings: rankings}
	move := &mover{forest: p.forest, seats: p.seats, needs: p.needs, picker: pick, tally: p.tally, rankings: rankings}
	squeeze := &squeezer{fleet: p.fleet, room: p.room, seats: p.seats, agenda: p.agenda, needs: p.needs, mover: move, budget: looks}
	line := &queue{fleet: p.fleet, classes: p.classes, forest: p.forest, seats: p.seats}
	repair := &repairer{
		fleet: p.fleet, room: p.room, seats: p.seats, queue: line, agenda: p.agenda, needs: p.needs,
		tally: p.tally, rankings: rankings, mover: move, squeezer: squeeze,
	}
	balance := &balancer{
		fleet: p.fleet, room: p.room, classes: p.classes, seats: p.seats, agenda: p.agenda, needs: p.needs,
		tally: p.tally, mover: move, repairs: repair, budget: looks,
	}
	return &work{
		fleet: p.fleet, room: p.room, agenda: p.agenda, squeezer: squeeze, repairs: repair, balancer: balance, budget: looks,
		rebuilds: &rebuilder{fleet: p.fleet, room: p.room, forest: p.forest, seats: p.seats, repairs: repair},
		pulls: &puller{
			fleet: p.fleet, room: p.room, classes: p.classes, kinds: p.kinds, forest: p.forest, seats: p.seats, needs: p.needs,
			rankings: rankings, mover: move, balancer: balance,
		},
	}
}

// prune removes seats that are no longer allowed.
func (w *work) prune() {
	for _, i := range w.agenda.visited() {
		w.repairs.prune(i)
	}
}

// run repairs the plan. If unfair is true, it also evens out loads. It reports
// whether the plan was empty before.
func (w *work) run(unfair bool) (cold bool) {
	cold = w.room.idle()
	w.budget.reset(cold)
	w.squeezer.begin()
	w.squeezer.enforce()
	w.repairs.fill(w.agenda.visited())
	w.refill()
	if newcomers := w.fleet.newcomers(); len(newcomers) > 0 && !cold && !w.rebuilds.reconsider(newcomers) {
		w.pulls.pull(newcomers)
	}
	const rounds = 4 // moves leave room, and filling it may exceed quotas again
	for n := 0; unfair && n < rounds; n++ {
		w.balancer.shed()
		unfair = w.refill()
	}
	w.refill()
	return cold
}

// refill uses the room below ceilings that moves have left, and reports whether there
// was any.
func (w *work) refill() (freed bool) {
	const rounds = 8
	n := 0
	for ; n < rounds && w.room.resetFreed(); n++ {
		w.repairs.fill(slices.Clone(w.agenda.review()))
	}
	return n > 0
}
