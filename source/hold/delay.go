package hold

import (
	"time"

	"hdsd/source"
)

// A cluster alternates from the third return of one of its parts on. Each of its changes then
// waits, longer each time, until nothing has returned for a while.
const (
	returnsAllowed = 2
	returnWithin   = time.Minute
	firstDelay     = time.Second
	longestDelay   = 10 * time.Second
)

// Bounds of the memory of a Delay: parts of a source that changed within the last two minutes,
// and values of one of them.
const (
	maxParts  = 100_000
	maxValues = 4
)

// Delay holds back changes of one source's alternating clusters.
type Delay struct {
	reported *source.Set // the latest of the source
	inUse    *source.Set // nil before the first

	byCluster map[string]*changing // by cluster: those that changed lately
	parts     int                  // of all of them
	swept     time.Time
	dueAt     time.Time // end of the first wait
	begun     []Begun   // since the last call of Begun
}

// changing is a cluster that changed lately.
type changing struct {
	parts map[string]*part // its endpoints by address; of the empty one: its configuration

	returns   int           // of the part that returned most often; 0: it does not alternate
	last      time.Time     // time of the last excessive return
	delay     time.Duration // the latest
	heldUntil time.Time     // until then no change of the cluster is followed; zero: all are
	kept      *source.Cluster
}

// part is an endpoint or a configuration that changed lately.
type part struct {
	values  []left // previous values, most recent last
	returns int    // number of returns to an earlier value
	last    time.Time
}

// left is a previous value of a part, and the end of its use. Absence is the value 0.
type left struct {
	value uint64
	time  time.Time
}

// Begun means that the changes of a cluster began to wait.
type Begun struct {
	Cluster string
	Returns int // of the part that returned most often
	For     time.Duration
}

// NewDelay returns an empty Delay.
func NewDelay() *Delay { return &Delay{byCluster: map[string]*changing{}} }

// Apply adds the present set of the source, and returns the set in use.
func (d *Delay) Apply(now time.Time, set *source.Set) *source.Set {
	if set == d.reported && !d.due(now) {
		return d.inUse
	}
	if d.reported == nil {
		d.reported, d.inUse = set, set
		return set
	}
	d.sweep(now)
	changed, removed := source.Changes(d.reported.Clusters, set.Clusters)
	for _, c := range changed {
		d.change(now, c.Name, d.reported.Find(c.Name), c)
	}
	for _, c := range removed {
		d.change(now, c.Name, c, nil)
	}
	d.reported = set
	d.use(now)
	return d.inUse
}

// due reports whether a wait has ended.
func (d *Delay) due(now time.Time) bool { return !d.dueAt.IsZero() && !now.Before(d.dueAt) }

// Due returns when Apply has to be called even without news; zero is never.
func (d *Delay) Due() time.Time { return d.dueAt }

// Begun returns the clusters whose changes began to wait since its last call.
func (d *Delay) Begun() []Begun {
	begun := d.begun
	d.begun = nil
	return begun
}

// change records the differences of a cluster, and holds them back if it alternates. If a
// cluster comes or goes as a whole, only that counts.
func (d *Delay) change(now time.Time, name string, before, after *source.Cluster) {
	c := d.byCluster[name]
	if c == nil {
		c = &changing{parts: map[string]*part{}}
		d.byCluster[name] = c
	}
	eachDifference(before, after, func(key string, previous, current uint64) {
		p := c.parts[key]
		if p == nil {
			if d.parts >= maxParts {
				return
			}
			p = &part{}
			c.parts[key] = p
			d.parts++
		}
		if p.change(now, previous, current); p.returns > returnsAllowed && p.last.Equal(now) {
			c.returns, c.last = max(c.returns, p.returns), now
		}
	})
	if !c.alternates(now) {
		c.returns, c.delay = 0, 0
		return
	}
	if c.heldUntil.IsZero() {
		c.delay = min(max(firstDelay, 2*c.delay), longestDelay)
		c.heldUntil, c.kept = now.Add(c.delay), d.inUse.Find(name)
		d.begun = append(d.begun, Begun{name, c.returns, c.delay})
	}
}

func (c *changing) alternates(now time.Time) bool {
	return c.returns > 0 && now.Sub(c.last) < returnWithin
}

// change counts a return of the part to an earlier value.
func (p *part) change(now time.Time, previous, current uint64) {
	if now.Sub(p.last) >= returnWithin {
		p.returns = 0
	}
	var values []left
	for _, value := range p.values {
		switch {
		case now.Sub(value.time) >= returnWithin, value.value == previous:
		case value.value == current:
			p.returns, p.last = p.returns+1, now
		default:
			values = append(values, value)
		}
	}
	p.values = append(values, left{previous, now})
	p.values = p.values[max(0, len(p.values)-maxValues):]
}

// use puts the source's set into use, except for waiting clusters.
func (d *Delay) use(now time.Time) {
	d.inUse, d.dueAt = d.reported, time.Time{}
	replacements := map[string]*source.Cluster{}
	for name, c := range d.byCluster {
		switch {
		case c.heldUntil.IsZero():
		case !now.Before(c.heldUntil):
			c.heldUntil, c.kept = time.Time{}, nil
		default:
			replacements[name] = c.kept
			if d.dueAt.IsZero() || c.heldUntil.Before(d.dueAt) {
				d.dueAt = c.heldUntil
			}
		}
	}
	if len(replacements) > 0 {
		copied := *d.reported
		copied.Clusters = source.Amend(d.reported.Clusters, replacements)
		d.inUse = &copied
	}
}

// sweep forgets, once a minute, parts that did not change for a minute.
func (d *Delay) sweep(now time.Time) {
	if now.Sub(d.swept) < returnWithin {
		return
	}
	d.swept, d.parts = now, 0
	for name, c := range d.byCluster {
		for key, p := range c.parts {
			if now.Sub(p.values[len(p.values)-1].time) >= returnWithin {
				delete(c.parts, key)
			}
		}
		if d.parts += len(c.parts); len(c.parts) == 0 && c.heldUntil.IsZero() {
			delete(d.byCluster, name)
		}
	}
}
