package aggregate

import (
	"container/heap"

	"hdsd/health"
)

// pair is an endpoint and one of its checkers, or one of them as a whole.
type pair struct {
	endpoint health.EndpointID
	checker  uint32
}

// What stands in place of the other one for an endpoint or a checker as a whole.
const (
	noEndpoint = ^health.EndpointID(0)
	noChecker  = ^uint32(0)

	ofFlap     = ^uint32(1) // the endpoint flapped
	ofCluster  = ^uint32(2) // in place of the endpoint's id is a cluster's number
	ofZones    = ^uint32(3) // a zone sees the endpoint otherwise than the verdict is
	ofPatience = ^uint32(4) // the endpoint has waited for long enough
)

// deadlines lists what is due when. There is no way to take one back: an
// owner remembers the tick that it waits for and passes over the others.
// Pairs of one report share a tick, so the heap stays small.
type deadlines struct {
	ticks tickHeap        // the keys of due
	due   map[tick][]pair // each not empty
	spare []pair          // to be used again
}

func (d *deadlines) add(at tick, p pair) {
	list, ok := d.due[at]
	if !ok {
		heap.Push(&d.ticks, at)
		list, d.spare = d.spare[:0], nil
	}
	d.due[at] = append(list, p)
}

func (d *deadlines) next() (tick, bool) {
	if len(d.ticks) == 0 {
		return 0, false
	}
	return d.ticks[0], true
}

// pop takes out the earliest tick that has come, with all that is due at it.
func (d *deadlines) pop(now tick) (tick, []pair) {
	at, ok := d.next()
	if !ok || at > now {
		return 0, nil
	}
	heap.Pop(&d.ticks)
	list := d.due[at]
	delete(d.due, at)
	return at, list
}

// done gives back a list that pop gave.
func (d *deadlines) done(list []pair) {
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
