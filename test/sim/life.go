package sim

import (
	"hdsd/assign"
	"hdsd/health"
)

// connect starts a stream of an observer.
func (f *fleet) connect(o *observer) {
	if f.coordinator == nil {
		return // it will try again
	}
	f.coordinator.connected(f.step, f.checker(o.number))
	o.connected = true
	o.streams++
	have := f.coordinator.plan(o.id)
	var gone []health.EndpointID
	wanted := map[health.EndpointID]bool{}
	for _, id := range have {
		wanted[id] = true
	}
	for _, list := range o.order {
		for _, h := range list {
			if !h.gone && !wanted[h.endpoint] {
				gone = append(gone, h.endpoint)
			}
		}
	}
	f.specifiers++
	o.assign(have, gone)
}

// restart makes an observer lose its stream and its state, and return.
func (f *fleet) restart(o *observer, steps int) {
	o.running, o.connected = false, false
	o.restart()
	f.coordinator.lost(f.step, o.id)
	f.when(f.step+steps, func() {
		o.running = true
		f.connect(o)
	})
}

// leave makes observers release their seats, and end.
func (f *fleet) leave(numbers []int) {
	var change assign.Change
	for _, i := range numbers {
		f.observers[i].running, f.observers[i].connected = false, false
		change.Leave = append(change.Leave, f.observers[i].id)
	}
	f.coordinator.apply(f.step, change)
}

// kill ends the coordinator; the observers continue to probe.
func (f *fleet) kill() (plan map[string][]health.Hash) {
	plan = f.coordinator.planner.Plan()
	for _, o := range f.observers {
		o.connected = false
	}
	f.coordinator = nil
	return plan
}

// revive starts a coordinator with the stored state. The observers return one by one.
func (f *fleet) revive(plan map[string][]health.Hash, within int) {
	f.start(plan)
	f.coordinator.settling = true
	f.coordinator.apply(f.step, assign.Change{Upsert: f.list})
	f.moved = 0
	for _, o := range f.observers {
		f.when(f.step+1+f.random.IntN(within), func() { f.connect(o) })
	}
	f.when(f.step+within+1, func() {
		f.coordinator.settling = false
		f.coordinator.apply(f.step, assign.Change{})
	})
}
