package aggregate

import (
	"container/heap"

	"hdsd/health"
)

// deadline says for which pair of endpoint and checker something is due. It may also
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

// deadlines lists what is due at each tick. A deadline cannot be withdrawn: its owner
// remembers the tick that it waits for and ignores all others. Deadlines set by one
// report share a tick, so the heap stays small.
type deadlines struct {
	ticks tickHeap            // the keys of due
	due   map[tick][]deadline // no list is empty
	spare []deadline          // to be used for the next list
}

func newDeadlines() deadlines { return deadlines{due: map[tick][]deadline{}} }

func (d *deadlines) add(at tick, x deadline) {
	list, ok := d.due[at]
	if !ok {
		heap.Push(&d.ticks, at)
		list, d.spare = d.spare[:0], nil
	}
	d.due[at] = append(list, x)
}

func (d *deadlines) next() (tick, bool) {
	if len(d.ticks) == 0 {
		return 0, false
	}
	return d.ticks[0], true
}

// pop removes the earliest tick and returns all that is due at it.
func (d *deadlines) pop() []deadline {
	at := heap.Pop(&d.ticks).(tick)
	list := d.due[at]
	delete(d.due, at)
	return list
}

// recycle keeps a list that pop returned for later use.
func (d *deadlines) recycle(list []deadline) {
	if cap(list) > cap(d.spare) && cap(list) <= 4096 {
		d.spare = list[:0]
	}
}

type tickHeap []tick

func (h tickHeap) Len() int           { return len(h) }
func (h tickHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h tickHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tickHeap) Push(x any)        { *h = append(*h, x.(tick)) }
func (h *tickHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
