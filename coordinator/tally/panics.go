package tally

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/coordinator/attention"
	"hdsd/health"
	"hdsd/internal/envoyrules"
	"hdsd/notify"
)

// Panics knows of which clusters Envoys disregard the health that hdsd publishes. A cluster that is
// wholly down is told as that alone.
type Panics struct {
	clusters map[string]*panicking
	dirty    map[string]*panicking
	count    int // clusters in panic, as of the last Take
}

// panicking is what is known of a cluster.
type panicking struct {
	rules      envoyrules.PanicRules
	priorities []envoyrules.Hosts
	statuses   []health.Status // published, by index; unpublished: it does not count
	since      time.Time       // zero: it was not in panic at the last Take
}

// unpublished stands for the health of an endpoint that data planes do not get.
const unpublished = health.Status(255)

// Published is what data planes get of an endpoint.
type Published struct {
	Is       bool // they get it
	Status   health.Status
	Priority uint8
	Weight   uint32
}

// PanicChange is a cluster that Envoys are in panic for, or no longer are.
type PanicChange struct {
	Name, Text string
	Since      time.Time
	Over       bool
}

// NewPanics makes Panics that know no cluster.
func NewPanics() *Panics {
	return &Panics{clusters: map[string]*panicking{}, dirty: map[string]*panicking{}}
}

// SetCluster sets all endpoints of a cluster, by index.
func (p *Panics) SetCluster(name string, rules envoyrules.PanicRules, count int, endpoint func(index int) Published) {
	k := p.clusters[name]
	if k == nil {
		if k = p.dirty[name]; k == nil { // else it was removed just now
			k = &panicking{}
		}
		p.clusters[name] = k
	}
	k.rules, k.priorities, k.statuses = rules, nil, slices.Repeat([]health.Status{unpublished}, count)
	for i := range k.statuses {
		k.set(i, endpoint(i))
	}
	p.dirty[name] = k
}

// SetEndpoint sets what data planes get of an endpoint. It ignores clusters and indices that are
// not there.
func (p *Panics) SetEndpoint(name string, index int, e Published) {
	if k := p.clusters[name]; k != nil && index < len(k.statuses) {
		k.set(index, e)
		p.dirty[name] = k
	}
}

// set counts an endpoint. Its priority and its weight are those of before.
func (k *panicking) set(index int, e Published) {
	for int(e.Priority) >= len(k.priorities) {
		k.priorities = append(k.priorities, envoyrules.Hosts{})
	}
	hosts := &k.priorities[e.Priority]
	if before := k.statuses[index]; before != unpublished {
		hosts.Add(int32(before), e.Weight, -1)
	}
	if k.statuses[index] = unpublished; e.Is {
		k.statuses[index] = e.Status
		hosts.Add(int32(e.Status), e.Weight, 1)
	}
}

// isDown reports whether all endpoints are down, which is told as such.
func (k *panicking) isDown() bool {
	return !slices.ContainsFunc(k.priorities, func(h envoyrules.Hosts) bool { return h.Healthy+h.Degraded+h.Excluded > 0 })
}

// Remove forgets a cluster.
func (p *Panics) Remove(name string) {
	if k := p.clusters[name]; k != nil {
		delete(p.clusters, name)
		k.priorities, p.dirty[name] = nil, k
	}
}

// Of says that Envoys are in panic for a cluster, wholly down or not, and why; empty if they are
// not. Since is zero where no change was taken that says so.
func (p *Panics) Of(name string) (text string, since time.Time) {
	if k := p.clusters[name]; k != nil {
		return k.rules.Explain(k.priorities, false), k.since
	}
	return "", time.Time{}
}

// Count returns for how many clusters Envoys are in panic, as of the last Take.
func (p *Panics) Count() int { return p.count }

// Take returns what changed since it was last called.
func (p *Panics) Take(now time.Time) (changes []PanicChange) {
	for _, name := range slices.Sorted(maps.Keys(p.dirty)) {
		k := p.dirty[name]
		in := len(k.rules.Panics(k.priorities)) > 0 && !k.isDown()
		if in == !k.since.IsZero() {
			continue
		}
		change := PanicChange{Name: name, Since: k.since, Over: !in}
		if k.since = (time.Time{}); in {
			k.since, change.Since, change.Text = now, now, k.rules.Explain(k.priorities, false)
			p.count++
		} else {
			p.count--
		}
		changes = append(changes, change)
	}
	clear(p.dirty)
	return changes
}

// Condition returns the condition that the change begins or ends.
func (c *PanicChange) Condition() notify.Change {
	return notify.Change{Over: c.Over, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.Panic, Cluster: c.Name}, Since: c.Since, Command: attention.Cluster(c.Name),
		Text: fmt.Sprintf("cluster %s: %s", c.Name, c.Text),
	}}
}
