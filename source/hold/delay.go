package hold

import (
	"time"

	"hdsd/source"
)

// A cluster alternates from the third return of something in it on. Each of its changes
// waits then, longer each time, until nothing returned for a while.
const (
	returnsAllowed = 2
	returnWithin   = time.Minute
	firstDelay     = time.Second
	longestDelay   = 10 * time.Second
)

// Bounds of what a Delay remembers: parts of a source that changed within the last two
// minutes, and values of one of them.
const (
	maxParts  = 100_000
	maxValues = 4
)

// Delay is what waits of one source because it alternates.
type Delay struct {
	said  *source.Set // the latest of the source
	inUse *source.Set // nil before the first

	by    map[string]*changing // by cluster: those that changed lately
	parts int                  // of all of them
	swept time.Time
	next  time.Time // when the first of them has waited
	begun []Begun   // since the last call of Begun
}

// changing is a cluster that changed lately.
type changing struct {
	parts map[string]*part // its endpoints by address; of the empty one: its configuration

	returns int           // of the part that returned most often; 0: it does not alternate
	last    time.Time     // when a part returned that does so too often
	delay   time.Duration // the latest
	until   time.Time     // nothing of the cluster is followed until then; zero: it is
	kept    *source.Cluster
}

// part is an endpoint or a configuration that changed lately.
type part struct {
	values  []left // what it was, most recent last
	returns int    // how often it was again what it had been
	last    time.Time
}

// left is a value that a part had, and when it had it no longer. Not to be there is the
// value 0.
type left struct {
	value uint64
	at    time.Time
}

// Begun says that the changes of a cluster wait.
type Begun struct {
	Cluster string
	Returns int // of the part that returned most often
	For     time.Duration
}

// NewDelay returns a Delay that has nothing in use.
func NewDelay() *Delay { return &Delay{by: map[string]*changing{}} }

// Take takes what the source says now, and returns what is in use.
func (d *Delay) Take(now time.Time, set *source.Set) *source.Set {
	if set == d.said && !d.due(now) {
		return d.inUse
	}
	if d.said == nil {
		d.said, d.inUse = set, set
		return set
	}
	d.sweep(now)
	changed, removed := source.Changes(d.said.Clusters, set.Clusters)
	for _, c := range changed {
		d.change(now, c.Name, d.said.Find(c.Name), c)
	}
	for _, c := range removed {
		d.change(now, c.Name, c, nil)
	}
	d.said = set
	d.use(now)
	return d.inUse
}

// due reports whether something has waited for its time.
func (d *Delay) due(now time.Time) bool { return !d.next.IsZero() && !now.Before(d.next) }

// Due returns when Take has to be called even if the source says nothing; zero is
// never.
func (d *Delay) Due() time.Time { return d.next }

// Begun returns the clusters whose changes began to wait since it was called last.
func (d *Delay) Begun() []Begun {
	begun := d.begun
	d.begun = nil
	return begun
}

// change notes what is different in a cluster, and has it wait if it alternates. Of a
// cluster that comes or goes as a whole, only that counts.
func (d *Delay) change(now time.Time, name string, before, after *source.Cluster) {
	c := d.by[name]
	if c == nil {
		c = &changing{parts: map[string]*part{}}
		d.by[name] = c
	}
	eachDifference(before, after, func(key string, was, is uint64) {
		p := c.parts[key]
		if p == nil {
			if d.parts >= maxParts {
				return
			}
			p = &part{}
			c.parts[key] = p
			d.parts++
		}
		if p.change(now, was, is); p.returns > returnsAllowed && p.last.Equal(now) {
			c.returns, c.last = max(c.returns, p.returns), now
		}
	})
	if !c.alternates(now) {
		c.returns, c.delay = 0, 0
		return
	}
	if c.until.IsZero() {
		c.delay = min(max(firstDelay, 2*c.delay), longestDelay)
		c.until, c.kept = now.Add(c.delay), d.inUse.Find(name)
		d.begun = append(d.begun, Begun{name, c.returns, c.delay})
	}
}

func (c *changing) alternates(now time.Time) bool {
	return c.returns > 0 && now.Sub(c.last) < returnWithin
}

// change counts it if the part is again what it had been.
func (p *part) change(now time.Time, was, is uint64) {
	if now.Sub(p.last) >= returnWithin {
		p.returns = 0
	}
	var values []left
	for _, one := range p.values {
		switch {
		case now.Sub(one.at) >= returnWithin, one.value == was:
		case one.value == is:
			p.returns, p.last = p.returns+1, now
		default:
			values = append(values, one)
		}
	}
	p.values = append(values, left{was, now})
	p.values = p.values[max(0, len(p.values)-maxValues):]
}

// use puts into use what the source says, but for the clusters that wait.
func (d *Delay) use(now time.Time) {
	d.inUse, d.next = d.said, time.Time{}
	with := map[string]*source.Cluster{}
	for name, c := range d.by {
		switch {
		case c.until.IsZero():
		case !now.Before(c.until):
			c.until, c.kept = time.Time{}, nil
		default:
			with[name] = c.kept
			if d.next.IsZero() || c.until.Before(d.next) {
				d.next = c.until
			}
		}
	}
	if len(with) > 0 {
		copied := *d.said
		copied.Clusters = source.Amend(d.said.Clusters, with)
		d.inUse = &copied
	}
}

// sweep forgets, once a minute, what did not change for a minute.
func (d *Delay) sweep(now time.Time) {
	if now.Sub(d.swept) < returnWithin {
		return
	}
	d.swept, d.parts = now, 0
	for name, c := range d.by {
		for key, p := range c.parts {
			if now.Sub(p.values[len(p.values)-1].at) >= returnWithin {
				delete(c.parts, key)
			}
		}
		if d.parts += len(c.parts); len(c.parts) == 0 && c.until.IsZero() {
			delete(d.by, name)
		}
	}
}
