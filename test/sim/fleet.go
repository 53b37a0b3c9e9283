package sim

import (
	"fmt"
	"math/rand/v2"

	"hdsd/assign"
	"hdsd/health"
	"hdsd/test/sim/truth"
)

// Size of the fleet.
const (
	zones      = 6
	endpoints  = 1200
	observers  = 60
	clusters   = 30
	late       = 0.05 // of the reports come a round late
	redundancy = 3
)

// fleet is one run.
type fleet struct {
	world       *truth.World
	random      *rand.Rand
	judge       *judge
	list        []assign.Endpoint
	observers   []*observer
	coordinator *coordinator
	step        int
	events      map[int][]func() // by step
}

func zoneOf(number int) int { return number % zones }

func locality(number int) health.Locality {
	return health.Locality{Region: "r", Zone: fmt.Sprint("z", zoneOf(number))}
}

func checkerOf(number int) health.Checker {
	return health.Checker{ID: checkerName(number), Locality: locality(number), Abilities: health.Abilities{health.HTTP: {}}}
}

// newFleet starts a fleet in which everybody is connected.
func newFleet(seed uint64) *fleet {
	world := truth.New(seed)
	world.Noise = 0.01
	f := &fleet{
		world: world, random: rand.New(rand.NewPCG(seed, 2)), events: map[int][]func(){},
		judge: &judge{world: world, detected: map[int]int{}, latest: map[int]int{}}, coordinator: newCoordinator(),
	}
	f.start(nil, nil)
	change := assign.Change{Upsert: f.list}
	for i := range observers {
		f.observers = append(f.observers, newObserver(i, world, f.random))
		change.Join = append(change.Join, checkerOf(i))
		f.coordinator.aggregator.Connected(at(0), checkerOf(i))
	}
	f.coordinator.apply(0, change)
	f.coordinator.moved = 0
	return f
}

// start starts a coordinator, with what an earlier one stored.
func (f *fleet) start(last []health.Verdict, plan map[string][]health.Hash) {
	c := f.coordinator
	class := c.planner.Class(assign.Class{Needs: []health.Ability{health.HTTP}})
	f.list = f.list[:0]
	for i := range endpoints {
		cluster := fmt.Sprint("cluster-", i%clusters)
		e := health.Endpoint{Cluster: cluster, Locality: locality(i), Address: fmt.Sprint("10.0.0.1:", i)}
		f.list = append(f.list, assign.Endpoint{
			ID: health.EndpointID(i), Hash: e.Hash(), ClusterHash: health.ClusterHash(cluster),
			Locality: e.Locality, Class: class, Redundancy: redundancy,
		})
	}
	c.endpoints(f.list, last)
	c.planner.Restore(plan)
	c.changed = f.judge.changed
	c.specify = func(checker string, add, remove []health.EndpointID) {
		for _, o := range f.observers {
			if checkerName(o.number) == checker && o.running {
				o.assign(add, remove)
			}
		}
	}
}

// when has something happen at a step.
func (f *fleet) when(step int, event func()) { f.events[step] = append(f.events[step], event) }

// run lets time pass up to a step.
func (f *fleet) run(end int) result {
	for ; f.step < end; f.step++ {
		for _, event := range f.events[f.step] {
			event()
		}
		for _, o := range f.observers {
			o.probe(f.step)
		}
		if f.coordinator != nil {
			f.report()
			f.coordinator.tick(f.step)
			if f.step%round == 0 {
				f.judge.look(f.step, f.coordinator.verdicts)
			}
		}
	}
	r := f.judge.result()
	r.moved = f.coordinator.moved
	return r
}

func (f *fleet) report() {
	for _, o := range f.observers {
		if o.running && o.connected && f.step%round == o.turn && f.random.Float64() >= late {
			f.coordinator.reported(f.step, checkerName(o.number), o.report())
		}
	}
}

// connect has an observer begin a stream.
func (f *fleet) connect(o *observer) {
	if f.coordinator == nil {
		return // it will try again
	}
	o.connected = true
	f.coordinator.connected(f.step, checkerOf(o.number))
	id := checkerName(o.number)
	have := f.coordinator.plan(id)
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
	o.assign(have, gone)
}

// restart has an observer lose its stream and its state, and return.
func (f *fleet) restart(o *observer, steps int) {
	o.running, o.connected = false, false
	o.restart()
	f.coordinator.lost(f.step, checkerName(o.number))
	f.when(f.step+steps, func() {
		o.running = true
		f.connect(o)
	})
}

// kill ends the coordinator; the observers go on probing.
func (f *fleet) kill() (last []health.Verdict, plan map[string][]health.Hash) {
	last, plan = f.coordinator.verdicts, f.coordinator.planner.Plan()
	for _, o := range f.observers {
		o.connected = false
	}
	f.coordinator = nil
	return last, plan
}

// revive starts a coordinator with what was stored; the observers come back one by one.
func (f *fleet) revive(last []health.Verdict, plan map[string][]health.Hash, within int) {
	f.coordinator = newCoordinator()
	f.start(last, plan)
	f.coordinator.settling = true
	f.coordinator.apply(f.step, assign.Change{Upsert: f.list})
	for _, o := range f.observers {
		f.when(f.step+1+f.random.IntN(within), func() { f.connect(o) })
	}
	f.when(f.step+within+1, func() {
		f.coordinator.settling = false
		f.coordinator.apply(f.step, assign.Change{})
	})
	f.coordinator.moved = 0
}
