package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Plan is which checker checks which endpoint, and how far the checkers know.
type Plan struct {
	// Set once.
	options Options
	lookup  Lookup
	present func(checker string) *health.Checker // nil: it is gone or silent

	planner   *assign.Planner
	queued    assign.Change                  // until Apply
	stranded  map[health.EndpointID]struct{} // endpoints that nobody checks
	handovers handovers
	samples   samples

	changed map[string]bool // checkers whose row is to be stored; true: and whose specifier is to be made
	next    time.Time       // when specifiers may next be made
	pending bool            // some are to be made

	seats map[string]int // of each checker, when the plan last changed
}

func newPlan(o Options, lookup Lookup, present func(string) *health.Checker) *Plan {
	return &Plan{
		options: o, lookup: lookup, present: present, planner: assign.New(assign.Options{}),
		stranded: map[health.EndpointID]struct{}{}, handovers: handovers{}, samples: samples{}, changed: map[string]bool{}, seats: map[string]int{},
	}
}

// restore takes up the stored plan.
func (p *Plan) restore(rows map[string][]health.Hash) { p.planner.Restore(rows) }

// Class gives the class of endpoints, for Upsert.
func (p *Plan) Class(c assign.Class) assign.ClassID { return p.planner.Class(c) }

// Reserve makes room in the queue for so many calls of Upsert.
func (p *Plan) Reserve(endpoints int) { p.queued.Upsert = slices.Grow(p.queued.Upsert, endpoints) }

// Upsert queues an endpoint that is new, or to be checked otherwise, for Apply.
func (p *Plan) Upsert(e assign.Endpoint) { p.queued.Upsert = append(p.queued.Upsert, e) }

// upsertChecker queues a checker whose capacity has changed, for Apply.
func (p *Plan) upsertChecker(k health.Checker) { p.queued.Join = append(p.queued.Join, k) }

// Divide queues that the endpoints of a zone get a second checker of their own zone, or
// lose it if that is over, for Apply. Many votes from elsewhere on them are contradicted
// in the zone, and one checker there may be lying.
func (p *Plan) Divide(zone health.Locality, over bool) {
	if over {
		p.queued.Undivided = append(p.queued.Undivided, zone)
	} else {
		p.queued.Divided = append(p.queued.Divided, zone)
	}
}

// takeQueued returns what was queued, once.
func (p *Plan) takeQueued() assign.Change {
	change := p.queued
	p.queued = assign.Change{}
	return change
}

// Renew notes that what checkers are sent of an endpoint has changed.
func (p *Plan) Renew(id health.EndpointID) {
	for checker := range p.planner.EachChecker(id) {
		p.note(checker)
	}
	for checker, sample := range p.samples {
		if _, has := sample[id]; has {
			p.note(checker)
		}
	}
}

// Remove queues an endpoint that is not to be checked any more, for Apply. It
// returns the checkers to unassign at once, before the id gets another meaning.
func (p *Plan) Remove(id health.EndpointID) []string {
	checkers := p.planner.Checkers(id)
	for checker := range p.handovers {
		if p.handovers.end(id, checker) {
			checkers = append(checkers, checker)
		}
	}
	checkers = append(checkers, p.unsample(id)...)
	for _, checker := range checkers {
		p.note(checker)
	}
	p.queued.Remove = append(p.queued.Remove, id)
	delete(p.stranded, id)
	return checkers
}

// note notes that the part of a checker has changed.
func (p *Plan) note(checker string) {
	p.changed[checker] = true
	p.pending = true
}

// change changes the plan. Checkers whose part changes get a specifier soon. It returns how
// many endpoints checkers got that do not join.
func (p *Plan) change(now time.Time, change assign.Change, out *Effects) (taken int) {
	diff := p.planner.Apply(change)
	out.Planned, out.Recount = true, true
	joins := make(map[string]bool, len(change.Join))
	for i := range change.Join {
		joins[change.Join[i].ID] = true
	}
	for i := range diff.Moves {
		if m := &diff.Moves[i]; !joins[m.Checker] {
			taken += len(m.Add)
		}
		p.move(now, &diff.Moves[i], out)
	}
	p.noteSeats()
	for _, u := range diff.Uncheckable {
		p.stranded[u.Endpoint] = struct{}{}
		out.Stranded = append(out.Stranded, u.Endpoint)
	}
	for _, id := range diff.Checkable {
		delete(p.stranded, id)
	}
	out.Checkable = append(out.Checkable, diff.Checkable...)
	for _, id := range change.Leave {
		delete(p.seats, id)
		if out.Rows == nil {
			out.Rows = map[string][]health.Hash{}
		}
		out.Rows[id] = nil
	}
	return taken
}

// noteSeats notes the rows of checkers whose seats have changed. A substitute that gets
// a seat already checks the endpoint, so the planner reports no move for it.
func (p *Plan) noteSeats() {
	for checker, seats := range p.planner.Seats() {
		before := p.seats[checker]
		if p.seats[checker] = seats; seats != before { // one without seats is in the plan, too
			if _, noted := p.changed[checker]; !noted {
				p.changed[checker], p.pending = false, true
			}
		}
	}
}

// move takes over what changes for one checker, except for what it hands over.
func (p *Plan) move(now time.Time, m *assign.Move, out *Effects) {
	p.note(m.Checker)
	out.Moves += len(m.Add) + len(m.Remove)
	removed, added := m.Remove, m.Add
	if k := p.present(m.Checker); k != nil {
		removed = slices.DeleteFunc(removed, func(id health.EndpointID) bool { return p.handOver(now, id, k) })
	}
	if p.handovers[m.Checker] != nil {
		added = slices.DeleteFunc(added, func(id health.EndpointID) bool { return p.handovers.end(id, m.Checker) })
	}
	if len(removed)+len(added) > 0 {
		out.Votes = append(out.Votes, VoteChange{Checker: m.Checker, Unassign: removed, Assign: added})
	}
}

// Rows returns the rows of the plan that are to be stored, once; nil for none.
func (p *Plan) Rows() map[string][]health.Hash {
	if len(p.changed) == 0 { // without arguments, Plan gives all rows
		return nil
	}
	rows := p.planner.Plan(slices.Collect(maps.Keys(p.changed))...)
	clear(p.changed)
	return rows
}

// Gathering reports whether the specifier of a checker is to be made again soon.
func (p *Plan) Gathering(checker string) bool { return p.changed[checker] }

// Part returns what the plan has of a checker.
func (p *Plan) Part(checker string) assign.Checker { return p.planner.Checker(checker) }

// Stranded reports whether no checker is able to check an endpoint.
func (p *Plan) Stranded(id health.EndpointID) bool {
	_, stranded := p.stranded[id]
	for _, sample := range p.samples {
		stranded = stranded && !sample[id]
	}
	return stranded
}

func (p *Plan) strandedEndpoints() int {
	left := maps.Clone(p.stranded)
	for _, sample := range p.samples {
		for id, counts := range sample {
			if counts {
				delete(left, id)
			}
		}
	}
	return len(left)
}

// Shortage returns how many checkers an endpoint lacks, and why.
func (p *Plan) Shortage(id health.EndpointID) (missing int, why assign.Reason) {
	return p.planner.Shortage(id)
}

// Digest stands for the whole plan: equal plans have equal digests.
func (p *Plan) Digest() uint64 { return p.planner.Digest() }

// Short counts the endpoints that lack checkers only because those that are able
// to check them have no room.
func (p *Plan) Short() int { return p.planner.Short() }
