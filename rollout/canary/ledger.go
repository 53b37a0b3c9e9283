package canary

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// Build stands for a kind of checker.
type Build uint64

// BuildOf returns the first 64 bits of a SHA-256 over a checker's version and
// abilities.
func BuildOf(c *health.Checker) Build {
	h := sha256.New()
	h.Write(append([]byte(c.Version), 0))
	for _, ability := range slices.Sorted(maps.Keys(c.Abilities)) {
		h.Write(append([]byte(ability), 0))
	}
	return Build(binary.BigEndian.Uint64(h.Sum(nil)))
}

// Options are the parameters of trials. A zero field means its default.
type Options struct {
	// Report is the time between two reports of a checker. Default: 1 s.
	Report time.Duration

	// Calm is the time without arrivals and losses before a suspect is tried. Default: 10 s.
	Calm time.Duration

	// Established reports whether a checker is no newcomer. Newcomers are canaries only
	// where no other checker can be. Default: all are established.
	Established func(checker string) bool
}

func (o Options) withDefaults() Options {
	if o.Report <= 0 {
		o.Report = time.Second
	}
	if o.Calm <= 0 {
		o.Calm = 10 * time.Second
	}
	if o.Established == nil {
		o.Established = func(string) bool { return true }
	}
	return o
}

// Version is a cluster's present version.
type Version struct {
	Shapes []specifier.Shape // each once
	Probe  time.Duration     // how long a first probe may take
}

// Proof is a shape that a checker of a build has survived.
type Proof struct {
	Build Build
	Shape specifier.Shape
}

// Loss is the end of a checker during a trial.
type Loss struct {
	Checker  string
	Identity string // verified; without one, its id
	Time     time.Time
}

// Ledger is the account of all trials. The package comment says who may call it.
type Ledger struct {
	options  Options
	clusters map[string]*cluster
	shapes   shapes
	roster   roster
	deadline time.Time // earliest due time; zero: none
	trials   int       // in progress
	events   events
}

// cluster is a cluster of a source.
type cluster struct {
	name    string
	version *version
	probe   time.Duration // how long a first probe may take
	trial   *trial        // at this cluster; nil if none is in progress
}

// New makes a ledger without entries.
func New(o Options) *Ledger {
	o = o.withDefaults()
	return &Ledger{
		options: o, clusters: map[string]*cluster{}, shapes: newShapes(),
		roster: roster{calm: o.Calm, history: o.Established, checkers: map[string]*checker{}},
	}
}

// Set sets another version of a cluster, which may be new. A trial in progress goes on with it.
// It restarts if there are other shapes to prove, and ends if they must be tried alone or are
// on trial in another cluster.
func (l *Ledger) Set(now time.Time, name string, v Version) {
	k := l.clusters[name]
	if k == nil {
		k = &cluster{name: name}
		l.clusters[name] = k
	}
	k.probe = v.Probe
	previous, next := k.version, l.shapes.version(slices.Compact(slices.Sorted(slices.Values(v.Shapes))))
	if previous == next {
		return
	}
	next.clusters++
	k.version = next
	switch t := k.trial; {
	case t != nil && next.alone():
		l.withdraw(now, t)
	case t != nil:
		t.release()
		l.begin(now, t)
	}
	if previous != nil {
		l.shapes.leave(previous)
	}
}

// Remove forgets a removed cluster. The records of its shapes stay while other clusters have
// them.
func (l *Ledger) Remove(now time.Time, name string) {
	k := l.clusters[name]
	if k == nil {
		return
	}
	if t := k.trial; t != nil {
		l.end(t)
		t.checker.noteEnded(now, t.tried)
		l.schedule(now) // others may try the shapes
	}
	delete(l.clusters, name)
	l.shapes.leave(k.version)
}

// Proven reports whether all checkers of a build may get the present version of a cluster.
func (l *Ledger) Proven(b Build, name string) bool {
	k := l.clusters[name]
	return k != nil && k.version.provenFor(b)
}

// ProvenShape reports whether all checkers of a build may get a shape.
func (l *Ledger) ProvenShape(b Build, id specifier.Shape) bool {
	s := l.shapes.known[id]
	return s != nil && s.provenFor(b)
}

// Proofs grows when a shape is proven.
func (l *Ledger) Proofs() uint64 { return l.shapes.proofs }

// Connected notes that a checker began a stream. If it had one, that counts as lost: its
// process may have ended.
func (l *Ledger) Connected(now time.Time, h *health.Checker) {
	l.Lost(now, h.ID)
	l.disturb(now, l.roster.connect(now, h))
}

// Lost notes the loss of a checker's stream: a trial may have ended its process.
func (l *Ledger) Lost(now time.Time, id string) {
	c := l.roster.checkers[id]
	if c == nil || !c.connected {
		return
	}
	c.noteLoss(now)
	for _, name := range l.Trials(id) {
		t := c.trials[name]
		l.end(t)
		v, kind := t.cluster.version, Lost
		v.begun()
		for _, charge := range l.shapes.accuse(now, t.checker, t.tried, t.suspect) {
			l.schedule(charge.blockedUntil(now))
		}
		if v.blocked() {
			kind = Blocked
		}
		l.events.note(kind, t)
	}
	for _, ended := range c.ended {
		if ended.silent {
			l.shapes.accuse(now, c, ended.shapes, ended.suspect)
		} else if now.Sub(ended.time) <= acceptWithin*l.options.Report {
			l.shapes.accuseEnded(now, c, ended.shapes)
		}
	}
	c.ended = nil
	l.disturb(now, c)
}

// Ended notes that hdsd itself ends a checker's stream, before its loss. It blames nothing: its
// trials end without a result.
func (l *Ledger) Ended(id string) {
	for _, name := range l.Trials(id) {
		t := l.roster.checkers[id].trials[name]
		l.end(t)
		l.events.note(Withdrawn, t)
	}
	if c := l.roster.checkers[id]; c != nil {
		c.ended = nil
	}
}

// disturb notes that a checker came or went.
func (l *Ledger) disturb(now time.Time, c *checker) {
	l.roster.disturb(now, c)
	if steadyAt := l.roster.steadyAt(c); now.Before(steadyAt) {
		l.schedule(steadyAt)
	}
	if len(l.shapes.charges) > 0 {
		l.schedule(now.Add(l.options.Calm))
	}
}

// Forget forgets a checker whose seats are given up, unless it is connected.
func (l *Ledger) Forget(id string) {
	if c := l.roster.checkers[id]; c != nil && !c.connected {
		delete(l.roster.checkers, id)
	}
}
