package canary

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// Shape stands for what a checker is sent of an endpoint apart from its
// address.
type Shape uint64

// Build stands for a kind of checker.
type Build uint64

// BuildOf gives the first 64 bits of a SHA-256 over a checker's version and
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

	// Calm is for how long no checker must come or go before a suspect is
	// tried. Default: 10 s.
	Calm time.Duration
}

func (o Options) withDefaults() Options {
	if o.Report <= 0 {
		o.Report = time.Second
	}
	if o.Calm <= 0 {
		o.Calm = 10 * time.Second
	}
	return o
}

// Version is what a cluster is now.
type Version struct {
	Shapes []Shape       // each once
	Probe  time.Duration // how long a first probe may take
}

// Proof says that a checker of a build has lived with a shape.
type Proof struct {
	Build Build
	Shape Shape
}

// Loss is the end of a checker during a trial.
type Loss struct {
	Checker string
	Time    time.Time
}

// Ledger is the account of all trials. See the package's comment for who may
// call it.
type Ledger struct {
	options  Options
	clusters map[string]*cluster
	checkers map[string]*checker
	unrest   time.Time // when a checker came or went last
	next     time.Time // nothing is due before; zero: nothing is
	trials   int       // under way
	events   []Event

	suspects, blocked int // clusters; the one includes the other
}

// cluster is what is kept of one.
type cluster struct {
	name    string
	version Version
	proven  map[Proof]struct{}
	builds  map[Build]bool // whether the whole version is proven; filled when asked
	trial   *trial         // nil: none is under way

	// While the version has every blamed shape.
	blamed []Shape // that were on trial when a checker was lost
	losses []Loss  // one: suspect; two: in quarantine

	refused   int       // trials in a row that were not taken
	refusedBy string    // the last of these
	retry     time.Time // not before, by others
}

// New gives a ledger without entries.
func New(o Options) *Ledger {
	return &Ledger{options: o.withDefaults(), clusters: map[string]*cluster{}, checkers: map[string]*checker{}}
}

// Set says what a cluster is now. A trial under way goes on with the new
// version, from the beginning where that has other shapes to prove.
func (l *Ledger) Set(now time.Time, name string, v Version) {
	k := l.cluster(name)
	v.Shapes = slices.Clone(v.Shapes)
	slices.Sort(v.Shapes)
	same := slices.Equal(v.Shapes, k.version.Shapes)
	k.version = v
	if same {
		return
	}
	clear(k.builds)
	k.refused, k.refusedBy, k.retry = 0, "", time.Time{}
	if !contains(v.Shapes, k.blamed) {
		l.acquit(k)
	}
	l.prune(k)
	if t := k.trial; t != nil {
		l.renew(now, t)
	}
}

func (l *Ledger) cluster(name string) *cluster {
	k := l.clusters[name]
	if k == nil {
		k = &cluster{name: name, proven: map[Proof]struct{}{}, builds: map[Build]bool{}}
		l.clusters[name] = k
	}
	return k
}

// contains tells whether all of some are among the sorted shapes; of none, all
// are.
func contains(shapes, some []Shape) bool {
	for _, s := range some {
		if _, ok := slices.BinarySearch(shapes, s); !ok {
			return false
		}
	}
	return true
}

// Forget lets go of a cluster that is gone, and of all that is known of it.
func (l *Ledger) Forget(name string) {
	k := l.clusters[name]
	if k == nil {
		return
	}
	if k.trial != nil {
		l.end(k.trial)
	}
	l.acquit(k)
	delete(l.clusters, name)
}

// acquit ends suspicion and quarantine.
func (l *Ledger) acquit(k *cluster) {
	if len(k.losses) > 0 {
		l.suspects--
	}
	if len(k.losses) > 1 {
		l.blocked--
	}
	k.blamed, k.losses = nil, nil
	if k.trial != nil {
		k.trial.suspect = false
	}
}

// maxProofs bounds what is kept of a cluster beyond its present version.
const maxProofs = 256

// prune lets go of proofs on shapes that the cluster no longer has, once they
// are many.
func (l *Ledger) prune(k *cluster) {
	if len(k.proven) <= maxProofs {
		return
	}
	maps.DeleteFunc(k.proven, func(p Proof, _ struct{}) bool { return !contains(k.version.Shapes, []Shape{p.Shape}) })
}

// Proven tells whether the cluster as it is now may be sent to all checkers of
// a build.
func (l *Ledger) Proven(b Build, name string) bool {
	k := l.clusters[name]
	return k != nil && k.provenFor(b)
}

func (k *cluster) provenFor(b Build) bool {
	whole, known := k.builds[b]
	if !known {
		whole = len(k.unproven(b)) == 0
		k.builds[b] = whole
	}
	return whole
}

// ProvenShape tells whether one shape of a cluster may be.
func (l *Ledger) ProvenShape(b Build, name string, s Shape) bool {
	k := l.clusters[name]
	if k == nil {
		return false
	}
	_, ok := k.proven[Proof{b, s}]
	return ok
}

func (k *cluster) unproven(b Build) []Shape {
	var all []Shape
	for _, s := range k.version.Shapes {
		if _, ok := k.proven[Proof{b, s}]; !ok {
			all = append(all, s)
		}
	}
	return all
}
