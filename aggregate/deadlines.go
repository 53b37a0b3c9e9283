package aggregate

import (
	"hdsd/health"
	"hdsd/internal/heap"
)

// deadline names the pair of endpoint and checker for which something is due. It may also
// concern the endpoint or the checker as a whole.
type deadline struct {
	endpoint health.EndpointID
	checker  uint32
}

// These values stand for no endpoint or no checker.
const (
	noEndpoint = ^health.EndpointID(0) // the checker as a whole
	noChecker  = ^uint32(0)            // the endpoint as a whole; with noEndpoint, the paths

	dueDamping     = ^uint32(1) // the penalty of the endpoint is low enough
	dueMassFailure = ^uint32(2) // the id of the endpoint is the number of a cluster
	dueZoneView    = ^uint32(3) // a zone's view of the endpoint has lasted
	dueBudget      = ^uint32(4) // the endpoint's wait budget is spent
	dueVacancy     = ^uint32(5) // the endpoint's vacant seats are no longer planned; below are numbers of checkers
)

// deadlines lists the due pairs of each tick. A deadline cannot be withdrawn: its owner
// remembers its current tick and ignores all others. Deadlines set by one report share a tick,
// so the heap stays small.
type deadlines struct {
	ticks heap.Heap[tick]     // the keys of due
	due   map[tick][]deadline // no list is empty
	spare []deadline          // memory for the next list
}

func newDeadlines() deadlines {
	return deadlines{ticks: heap.Heap[tick]{Less: func(a, b tick) bool { return a < b }}, due: map[tick][]deadline{}}
}

func (d *deadlines) add(t tick, x deadline) {
	list, ok := d.due[t]
	if !ok {
		d.ticks.Push(t)
		list, d.spare = d.spare[:0], nil
	}
	d.due[t] = append(list, x)
}

func (d *deadlines) next() (tick, bool) {
	if len(d.ticks.Items) == 0 {
		return 0, false
	}
	return d.ticks.Items[0], true
}

// pop removes the earliest tick and returns its deadlines.
func (d *deadlines) pop() []deadline {
	earliest := d.ticks.Pop()
	list := d.due[earliest]
	delete(d.due, earliest)
	return list
}

// recycle keeps a list that pop returned for later use.
func (d *deadlines) recycle(list []deadline) {
	if cap(list) > cap(d.spare) && cap(list) <= 4096 {
		d.spare = list[:0]
	}
}
