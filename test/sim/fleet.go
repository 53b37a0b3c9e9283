package sim

import (
	"fmt"
	"math/rand/v2"

	"hdsd/assign"
	"hdsd/health"
	"hdsd/test/sim/truth"
)

// Size says how large a fleet is, and how many of its reports are late or lost.
type Size struct {
	truth.Layout
	Clusters, Redundancy int
	Late                 float64 // share of the reports that come up to a round late
	Lost                 float64 // share of the reports that are lost; the next one has the same content
	Failing              float64 // share of the endpoints that are truly down for a while
}

// settled is the step from which verdicts are judged: by then, every observer has
// probed and reported.
const settled = 10 * round

// fleet is one run.
type fleet struct {
	Size
	world       *truth.World
	random      *rand.Rand
	list        []assign.Endpoint
	observers   []*observer
	byID        map[string]*observer
	coordinator *coordinator // nil while it is down
	contenders  []*contender
	step        int
	events      map[int][]func() // by step
	weights     map[int]float64  // of checkers that claim one, by number

	moved      int // added assignments
	specifiers int // sent specifiers
}

func (f *fleet) locality(number int) health.Locality {
	return health.Locality{Region: "r", Zone: fmt.Sprint("z", f.Zone(number))}
}

func (f *fleet) checker(number int) health.Checker {
	return health.Checker{ID: checkerName(number), Locality: f.locality(number), Abilities: health.Abilities{health.HTTP: {}}, Weight: f.weights[number]}
}

// describe returns a checker, or nil if it is not connected.
func (f *fleet) describe(id string) *health.Checker {
	o := f.byID[id]
	if !o.running || !o.connected {
		return nil
	}
	k := f.checker(o.number)
	return &k
}

// Of returns the size of a fleet with this number of endpoints: one checker for each
// hundred, and clusters of about forty.
func Of(endpoints int) Size {
	return Size{
		Layout:   truth.Layout{Endpoints: endpoints, Observers: endpoints / 100, Zones: 6, Noise: 0.01},
		Clusters: endpoints / 42, Redundancy: 3, Late: 0.05, Lost: 0.05, Failing: 0.01,
	}
}

// newFleet starts a fleet in which all are connected. Its rules have the same
// threshold.
func newFleet(size Size, seed uint64, rules ...Rule) *fleet {
	f := &fleet{
		Size: size, world: truth.New(seed, size.Layout), random: rand.New(rand.NewPCG(seed, 2)),
		byID: map[string]*observer{}, events: map[int][]func(){}, weights: map[int]float64{},
	}
	for _, r := range rules {
		f.contenders = append(f.contenders, newContender(r, f.world))
	}
	for i := range size.Endpoints {
		cluster := fmt.Sprint("cluster-", clusterOf(i/size.Zones, size.Clusters))
		e := health.Endpoint{Cluster: cluster, Locality: f.locality(i), Address: fmt.Sprint("10.0.0.1:", i)}
		f.list = append(f.list, assign.Endpoint{
			ID: health.EndpointID(i), Hash: e.Hash(), ClusterHash: health.ClusterHash(cluster),
			Locality: e.Locality, Redundancy: size.Redundancy,
		})
	}
	f.start(nil)
	change := assign.Change{Upsert: f.list}
	for i := range size.Observers {
		o := newObserver(i, f.world, f.random, rules[0].threshold())
		f.observers, f.byID[o.id] = append(f.observers, o), o
		change.Join = append(change.Join, f.checker(i))
		for _, c := range f.contenders {
			c.aggregator.Connected(at(0), f.checker(i))
		}
	}
	f.coordinator.apply(0, change)
	f.moved, f.specifiers = 0, 0
	return f
}

// clusterOf puts one endpoint in fifty into the first cluster, which is the largest.
func clusterOf(number, clusters int) int {
	if number%50 == 0 {
		return 0
	}
	return number % clusters
}

// start starts a coordinator, with the stored plan and verdicts of an earlier one.
func (f *fleet) start(plan map[string][]health.Hash) {
	c := &coordinator{planner: assign.New(assign.Options{}), contenders: f.contenders, specify: f.specify, describe: f.describe}
	class := c.planner.Class(assign.Class{Needs: []health.Ability{health.HTTP}})
	for i := range f.list {
		f.list[i].Class = class
	}
	c.planner.Restore(plan)
	for _, x := range f.contenders {
		x.start(f.list)
	}
	f.coordinator = c
}

// specify sends specifiers to the connected checkers of a move.
func (f *fleet) specify(m *assign.Move) {
	f.moved += len(m.Add)
	if o := f.byID[m.Checker]; o.running && o.connected {
		f.specifiers++
		o.assign(m.Add, m.Remove)
	}
}

// when schedules an event at a step.
func (f *fleet) when(step int, event func()) { f.events[step] = append(f.events[step], event) }

// run advances the time up to a step.
func (f *fleet) run(end int) {
	for ; f.step < end; f.step++ {
		for i := 0; i < len(f.events[f.step]); i++ { // an event may add another
			f.events[f.step][i]()
		}
		for _, o := range f.observers {
			o.probe(f.step)
		}
		f.report()
		if f.coordinator != nil {
			f.coordinator.tick(f.step)
		}
		if f.step%round == 0 && f.step >= settled {
			for _, c := range f.contenders {
				c.judge.look(f.step, c.verdicts)
			}
		}
	}
}

func (f *fleet) report() {
	for _, o := range f.observers {
		if f.coordinator == nil || !o.running || !o.connected || f.step%round != o.turn {
			continue
		}
		switch luck := f.random.Float64(); {
		case luck < f.Lost:
		case luck < f.Lost+f.Late:
			votes, stream := o.report(), o.streams
			f.when(f.step+1+f.random.IntN(round-1), func() {
				if f.coordinator != nil && o.connected && o.streams == stream {
					f.coordinator.reported(f.step, o.id, votes)
				}
			})
		default:
			f.coordinator.reported(f.step, o.id, o.report())
		}
	}
}
