package truth

import (
	"math"
	"math/rand/v2"
)

// Span is a period in steps: From is inclusive, To exclusive.
type Span struct{ From, To int }

func (s Span) holds(step int) bool { return s.From <= step && step < s.To }

// Layout says how large a world is, and how many of its probes fail by chance.
type Layout struct {
	Endpoints, Observers int // each named by its number
	Zones                int
	Noise                float64 // share of the probes of healthy endpoints that fail by chance
}

// Zone returns the zone of an endpoint or an observer.
func (l Layout) Zone(number int) int { return number % l.Zones }

// Outage is an endpoint that is truly down for a while.
type Outage struct {
	Endpoint int
	Span
}

// World is the truth. Its probes draw from one seeded source, so that a run can be
// repeated.
type World struct {
	Layout
	random *rand.Rand
	lucky  int // probes until the next one that fails by chance

	outages []Outage
	down    [][]int         // by endpoint: its outages, in order of time
	cuts    []Span          // by observer: reaches nothing
	stuck   []bool          // by observer: every probe succeeds
	broken  []bool          // by observer: every probe fails
	walls   []Span          // by zone of the observer and of the endpoint: no way there
	paths   map[[2]int]Span // by observer and endpoint: no way there

	brown Span // a share of all probes fails
	share float64
}

// New makes a world without faults.
func New(seed uint64, l Layout) *World {
	w := &World{
		Layout: l, random: rand.New(rand.NewPCG(seed, 1)),
		down: make([][]int, l.Endpoints), cuts: make([]Span, l.Observers), stuck: make([]bool, l.Observers), broken: make([]bool, l.Observers),
		walls: make([]Span, l.Zones*l.Zones), paths: map[[2]int]Span{},
	}
	w.draw()
	return w
}

// Fail takes an endpoint down for a period, after all its other outages.
func (w *World) Fail(endpoint int, s Span) {
	w.down[endpoint] = append(w.down[endpoint], len(w.outages))
	w.outages = append(w.outages, Outage{endpoint, s})
}

// Cut keeps an observer from reaching any endpoint, once in a run.
func (w *World) Cut(observer int, s Span) { w.cuts[observer] = s }

// CutPath keeps an observer from reaching one endpoint.
func (w *World) CutPath(observer, endpoint int, s Span) { w.paths[[2]int{observer, endpoint}] = s }

// Wall keeps the observers of a zone from reaching the endpoints of another, once in a run.
func (w *World) Wall(from, to int, s Span) { w.walls[from*w.Zones+to] = s }

// Stick makes every probe of an observer succeed.
func (w *World) Stick(observer int) { w.stuck[observer] = true }

// Break makes every probe of an observer fail.
func (w *World) Break(observer int) { w.broken[observer] = true }

// Brown makes a share of all probes fail for a period, once in a run.
func (w *World) Brown(share float64, s Span) { w.share, w.brown = share, s }

// Probe reports whether an observer's probe succeeds.
func (w *World) Probe(step, observer, endpoint int) bool {
	if w.stuck[observer] {
		return true
	}
	if w.broken[observer] {
		return false
	}
	if len(w.down[endpoint]) > 0 {
		if _, down := w.Down(step, endpoint); down {
			return false
		}
	}
	if w.cuts[observer].holds(step) || w.walls[w.Zone(observer)*w.Zones+w.Zone(endpoint)].holds(step) {
		return false
	}
	if len(w.paths) > 0 && w.paths[[2]int{observer, endpoint}].holds(step) {
		return false
	}
	return !w.unlucky(step)
}

// unlucky reports whether a probe fails by chance. It draws the distance to the next
// failure, which is the same as drawing for each probe, but faster.
func (w *World) unlucky(step int) bool {
	if w.brown.holds(step) && w.random.Float64() < w.share {
		return true
	}
	if w.Noise == 0 {
		return false
	}
	if w.lucky > 0 {
		w.lucky--
		return false
	}
	w.draw()
	return true
}

func (w *World) draw() {
	if w.Noise > 0 {
		w.lucky = int(math.Log1p(-w.random.Float64()) / math.Log1p(-w.Noise))
	}
}

// Down returns the outage of an endpoint at a step.
func (w *World) Down(step, endpoint int) (outage int, down bool) {
	for _, i := range w.down[endpoint] {
		if w.outages[i].holds(step) {
			return i, true
		}
	}
	return 0, false
}

// Up reports whether an endpoint is truly up, and since which step.
func (w *World) Up(step, endpoint int) (up bool, since int) {
	for _, i := range w.down[endpoint] {
		switch s := w.outages[i]; {
		case s.holds(step):
			return false, s.From
		case s.To <= step:
			since = s.To
		}
	}
	return true, since
}

// Sound reports whether an endpoint is up in the whole run.
func (w *World) Sound(endpoint int) bool { return len(w.down[endpoint]) == 0 }

// Outages lists all outages of a run.
func (w *World) Outages() []Outage { return w.outages }
