package canary

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// nature is what a version of a cluster does to checkers.
type nature int

const (
	good     nature = iota
	receipt         // ends a checker that reads it
	reporter        // ends it at its next report
	prober          // ends it when the first probe is answered
	rejected        // is not taken, nor is anything that comes along
)

const (
	step   = 100 * time.Millisecond
	report = time.Second
	calm   = 10 * time.Second
	jitter = 2 * time.Second
)

// edition is one version of a cluster, with a number of its own.
type edition struct {
	number int
	nature nature
}

func (v edition) shapes() []specifier.Shape {
	return []specifier.Shape{specifier.Shape(2 * v.number), specifier.Shape(2*v.number + 1)}
}

// process is a simulated checker.
type process struct {
	health.Checker
	down     time.Duration // when it is started again; 0: it runs
	sent     map[string]edition
	has      map[string]edition       // the same unless it was not taken
	since    map[string]time.Duration // when each came
	serial   uint64                   // of what it was sent
	reports  time.Duration            // its turn
	answered bool                     // it has reported since it was sent something
}

// world simulates a fleet, its operators, and the trials of a coordinator.
type world struct {
	t        *testing.T
	random   *rand.Rand
	ledger   *Ledger
	clock    time.Duration
	checkers []*process
	present  map[string]edition
	stable   map[string]edition
	serial   uint64
	numbers  int
	deaths   map[int]int // by version
	events   map[time.Duration][]func()
	dirty    bool
	told     *[]Event // where events are written down; nil: nowhere
	sharing  bool     // changes mostly make versions that other clusters have had
	confused bool     // kills and restarts may be taken for each other
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (w *world) now() time.Time { return epoch.Add(w.clock) }

func newWorld(t *testing.T, seed uint64, checkers int) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), ledger: New(Options{Report: report, Calm: calm}),
		present: map[string]edition{}, stable: map[string]edition{}, deaths: map[int]int{}, events: map[time.Duration][]func(){},
	}
	for i := range checkers {
		p := &process{Checker: health.Checker{ID: fmt.Sprint("checker-", i), Version: fmt.Sprint("envoy/1.4", i%2)}}
		w.checkers = append(w.checkers, p)
		w.start(p)
	}
	return w
}

func (w *world) start(p *process) {
	p.down, p.sent, p.has, p.since, p.serial = 0, nil, map[string]edition{}, map[string]time.Duration{}, 0
	p.reports = time.Duration(w.random.IntN(10)) * step
	w.ledger.Connected(w.now(), &p.Checker)
	w.dirty = true
}

// stop ends a process. Sometimes its successor connects before the end is noticed.
func (w *world) stop(p *process) {
	if p.down > 0 {
		return
	}
	p.down = w.clock + time.Duration(1+w.random.IntN(15))*step
	if w.random.IntN(3) > 0 {
		w.ledger.Lost(w.now(), p.ID)
		w.dirty = true
	}
}

func (w *world) change(name string, n nature) {
	v := w.edition(n)
	if !slices.Contains(slices.Collect(maps.Values(w.present)), v) {
		delete(w.deaths, v.number) // it may have been there before; nobody remembers its blame
	}
	w.present[name] = v
	w.ledger.Set(w.now(), name, Version{Shapes: w.present[name].shapes(), Probe: jitter + time.Second})
	w.dirty = true
}

// edition returns a version of a nature, mostly one of two if clusters share them.
func (w *world) edition(n nature) edition {
	if w.sharing && w.random.IntN(5) > 0 {
		return edition{1000 + 2*int(n) + w.random.IntN(2), n}
	}
	w.numbers++
	return edition{w.numbers, n}
}

// send gives a checker what it may have.
func (w *world) send(p *process) {
	if p.down > 0 {
		return
	}
	has := map[string]edition{}
	build := BuildOf(&p.Checker)
	names := slices.Sorted(maps.Keys(w.present))
	w.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		v, old := w.present[name], w.stable[name]
		_, had := p.sent[name]
		switch {
		case w.ledger.Proven(build, name) || w.ledger.Try(w.now(), p.ID, name, had):
			has[name] = v
		case old.number > 0 && w.ledger.ProvenShape(build, old.shapes()[0]):
			has[name] = old
		}
	}
	if p.sent != nil && maps.Equal(has, p.sent) {
		w.ledger.Sent(w.now(), p.ID, p.serial)
		return
	}
	w.serial++
	w.ledger.Sent(w.now(), p.ID, w.serial)
	p.serial, p.sent, p.answered = w.serial, has, false
	taken := true
	for _, v := range has {
		taken = taken && v.nature != rejected
	}
	if !taken {
		return
	}
	before := p.has
	p.has = has
	for _, name := range slices.Sorted(maps.Keys(has)) {
		v := has[name]
		if before[name] != v {
			p.since[name] = w.clock
		}
		if v.nature == receipt {
			w.kill(p, v)
		}
	}
}

func (w *world) kill(p *process, v edition) {
	if p.down == 0 {
		w.deaths[v.number]++
		w.stop(p)
	}
}

// pass simulates one step.
func (w *world) pass() {
	w.clock += step
	for _, event := range w.events[w.clock] {
		event()
	}
	for _, p := range w.checkers {
		switch {
		case p.down > 0 && w.clock >= p.down:
			w.start(p)
		case p.down == 0:
			w.live(p)
		}
	}
	if at, ok := w.ledger.NextDeadline(); ok && !w.now().Before(at) && w.ledger.Tick(w.now()) {
		w.dirty = true
	}
	for _, e := range w.ledger.Events() {
		w.dirty = true
		if w.told != nil {
			*w.told = append(*w.told, e)
		}
		if e.Kind == Proven {
			w.stable[e.Cluster] = w.present[e.Cluster]
		}
		if e.Kind == Blocked && w.present[e.Cluster].nature == good && !w.confused {
			w.t.Errorf("%s: the good %s is blocked: %+v", w.clock, e.Cluster, w.ledger.Standing(e.Cluster))
		}
	}
	if w.dirty {
		w.dirty = false
		for _, p := range w.checkers {
			w.send(p)
		}
	}
}

// live lets a process probe and report.
func (w *world) live(p *process) {
	for name, v := range p.has {
		if v.nature == prober && w.clock-p.since[name] >= jitter/2 {
			w.kill(p, v)
			return
		}
	}
	if w.clock%report != p.reports {
		return
	}
	for _, v := range p.has {
		if v.nature == reporter {
			w.kill(p, v)
			return
		}
	}
	if p.serial == 0 || len(p.has) == 0 && len(p.sent) > 0 {
		return // it has taken nothing yet
	}
	if !p.answered && maps.Equal(p.has, p.sent) {
		p.answered = true
		w.ledger.Accepted(w.now(), p.ID, p.serial, func(string) bool { return false })
	}
	w.ledger.Reported(w.now(), p.ID)
	for name, v := range p.has {
		if w.clock-p.since[name] >= jitter {
			for _, s := range v.shapes() {
				w.ledger.Probed(p.ID, name, s)
			}
		}
	}
}

func (w *world) run(d time.Duration) {
	for end := w.clock + d; w.clock < end && !w.t.Failed(); {
		w.pass()
	}
}

// at schedules an event.
func (w *world) at(d time.Duration, event func()) {
	d = (w.clock + d).Truncate(step)
	w.events[d] = append(w.events[d], event)
}

// rolling restarts every checker, one shortly after the other.
func (w *world) rolling(after time.Duration) {
	for _, i := range w.random.Perm(len(w.checkers)) {
		w.at(after, func() { w.stop(w.checkers[i]) })
		after += 2*time.Second + time.Duration(w.random.IntN(60))*step
	}
}
