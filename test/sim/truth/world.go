package truth

import "math/rand/v2"

// Span is a span of time in steps, From included and To not.
type Span struct{ From, To int }

func (s Span) holds(step int) bool { return s.From <= step && step < s.To }

// World says what is true. Probes draw from one seeded source, so that a run
// can be repeated.
type World struct {
	// Noise is how many of the probes of something healthy fail for no reason.
	Noise float64

	random  *rand.Rand
	outages map[int]Span    // by endpoint: truly down
	cuts    map[int]Span    // by observer: reaches nothing
	paths   map[[2]int]Span // by observer and endpoint: does not reach that
	stuck   map[int]bool    // observers that take every probe for a success
}

// New makes a world in which everything is well.
func New(seed uint64) *World {
	return &World{
		random:  rand.New(rand.NewPCG(seed, 1)),
		outages: map[int]Span{}, cuts: map[int]Span{}, paths: map[[2]int]Span{}, stuck: map[int]bool{},
	}
}

// Fail takes an endpoint down for a while, once in a run.
func (w *World) Fail(endpoint int, s Span) { w.outages[endpoint] = s }

// Cut keeps an observer from reaching any endpoint, once in a run.
func (w *World) Cut(observer int, s Span) { w.cuts[observer] = s }

// CutPath keeps an observer from reaching one endpoint.
func (w *World) CutPath(observer, endpoint int, s Span) { w.paths[[2]int{observer, endpoint}] = s }

// Stick has an observer take every probe for a success.
func (w *World) Stick(observer int) { w.stuck[observer] = true }

// Probe tells whether a probe succeeds, as far as the observer can tell.
func (w *World) Probe(step, observer, endpoint int) bool {
	if w.stuck[observer] {
		return true
	}
	if w.outages[endpoint].holds(step) || w.cuts[observer].holds(step) || w.paths[[2]int{observer, endpoint}].holds(step) {
		return false
	}
	return w.Noise == 0 || w.random.Float64() >= w.Noise
}

// Up tells whether an endpoint is truly up, and since when: the step of its
// latest change.
func (w *World) Up(step, endpoint int) (up bool, since int) {
	s, ok := w.outages[endpoint]
	switch {
	case !ok || step < s.From:
		return true, 0
	case step < s.To:
		return false, s.From
	default:
		return true, s.To
	}
}

// Outages lists the endpoints that are down at some time in a run, and when.
func (w *World) Outages() map[int]Span { return w.outages }
