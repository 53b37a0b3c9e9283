package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Plan assigns endpoints to checkers, and records which assignments the checkers have.
type Plan struct {
	// options, lookup and present are set once.
	options Options
	lookup  Lookup
	present func(checker string) *health.Checker // nil: gone or silent

	planner   *assign.Planner
	queued    assign.Change                  // until Apply
	stranded  map[health.EndpointID]struct{} // endpoints that nobody checks
	handovers handovers
	samples   samples

	changed     map[string]bool // checkers whose row to store; true: and whose specifier to make
	nextSpecify time.Time       // earliest time for the next specifiers
	pending     bool            // some specifiers are to be made

	seats map[string]int // of each checker, after the latest change
}

func newPlan(o Options, lookup Lookup, present func(string) *health.Checker) *Plan {
	return &Plan{
		options: o, lookup: lookup, present: present, planner: assign.New(assign.Options{}),
		stranded: map[health.EndpointID]struct{}{}, handovers: handovers{}, samples: samples{}, changed: map[string]bool{}, seats: map[string]int{},
	}
}

// restore takes the stored plan.
func (p *Plan) restore(rows map[string][]health.Hash) { p.planner.Restore(rows) }

// Class returns the class of endpoints, for Upsert.
func (p *Plan) Class(c assign.Class) assign.ClassID { return p.planner.Class(c) }

// Reserve makes room in the queue for a number of Upsert calls.
func (p *Plan) Reserve(endpoints int) { p.queued.Upsert = slices.Grow(p.queued.Upsert, endpoints) }

// Upsert queues a new or changed endpoint for Apply.
func (p *Plan) Upsert(e assign.Endpoint) { p.queued.Upsert = append(p.queued.Upsert, e) }

// upsertChecker queues a checker whose capacity has changed, for Apply.
func (p *Plan) upsertChecker(k health.Checker) { p.queued.Join = append(p.queued.Join, k) }

// Divide queues, for Apply, a second checker of their own zone for the endpoints of a zone, or
// its end if over. Many votes from elsewhere on them are contradicted in the zone, and one
// checker there may be lying.
func (p *Plan) Divide(zone health.Locality, over bool) {
	if over {
		p.queued.Undivided = append(p.queued.Undivided, zone)
	} else {
		p.queued.Divided = append(p.queued.Divided, zone)
	}
}

// drainQueued returns and clears the queued changes.
func (p *Plan) drainQueued() assign.Change {
	change := p.queued
	p.queued = assign.Change{}
	return change
}

// Renew notes a change of the specifier's part for an endpoint.
func (p *Plan) Renew(id health.EndpointID) {
	for checker := range p.planner.EachChecker(id) {
		p.note(checker)
	}
	for checker, sample := range p.samples {
		if _, ok := sample[id]; ok {
			p.note(checker)
		}
	}
}

// Remove queues the removal of an endpoint, for Apply. It returns the checkers to unassign at
// once, before the id gets another meaning.
func (p *Plan) Remove(id health.EndpointID) []string {
	checkers := p.planner.Checkers(id)
	for checker := range p.handovers {
		if p.handovers.end(id, checker) {
			checkers = append(checkers, checker)
		}
	}
	checkers = append(checkers, p.unsample(id)...)
	slices.Sort(checkers)
	for _, checker := range checkers {
		p.note(checker)
	}
	p.queued.Remove = append(p.queued.Remove, id)
	delete(p.stranded, id)
	return checkers
}

// note notes a change of a checker's part.
func (p *Plan) note(checker string) {
	p.changed[checker] = true
	p.pending = true
}

// change changes the plan. Checkers whose part changes get a specifier soon. It returns the
// number of endpoints that checkers got without joining.
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

// noteSeats notes the rows of checkers whose seats have changed. A substitute that gets a seat
// already checks the endpoint, so the planner reports no move for it.
func (p *Plan) noteSeats() {
	for checker, seats := range p.planner.Seats() {
		previous := p.seats[checker]
		if p.seats[checker] = seats; seats != previous { // a checker without seats is in the plan, too
			if _, noted := p.changed[checker]; !noted {
				p.changed[checker], p.pending = false, true
			}
		}
	}
}

// move applies the changes for one checker, except for its handovers.
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

// Rows returns and clears the rows of the plan to store; nil for none.
func (p *Plan) Rows() map[string][]health.Hash {
	if len(p.changed) == 0 { // without arguments, Plan gives all rows
		return nil
	}
	rows := p.planner.Plan(slices.Collect(maps.Keys(p.changed))...)
	clear(p.changed)
	return rows
}

// Gathering reports whether the specifier of a checker is due soon.
func (p *Plan) Gathering(checker string) bool { return p.changed[checker] }

// Part returns the plan's figures for a checker.
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
	remaining := maps.Clone(p.stranded)
	for _, sample := range p.samples {
		for id, counts := range sample {
			if counts {
				delete(remaining, id)
			}
		}
	}
	return len(remaining)
}

// Shortage returns the number of checkers that an endpoint lacks, and the reason.
func (p *Plan) Shortage(id health.EndpointID) (missing int, reason assign.Reason) {
	return p.planner.Shortage(id)
}

// Digest stands for the whole plan: equal plans have equal digests.
func (p *Plan) Digest() uint64 { return p.planner.Digest() }

// Short counts the endpoints that lack checkers only because the able checkers have no room.
func (p *Plan) Short() int { return p.planner.Short() }
