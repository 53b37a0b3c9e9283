package tally

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/coordinator/attention"
	"hdsd/envoy/rules"
	"hdsd/health"
	"hdsd/notify"
)

// Panics tracks the clusters whose published health Envoys disregard. It returns no change for
// a cluster that is wholly down: CLUSTER_DOWN covers that.
type Panics struct {
	clusters map[string]*panicState
	dirty    map[string]*panicState
	count    int // clusters in panic, as of the last Take
}

// panicState is the state of a cluster.
type panicState struct {
	rules      rules.PanicRules
	priorities []rules.Hosts
	statuses   []health.Status // by index: the published health, or unpublished
	start      time.Time       // zero: it was not in panic at the last Take
}

// unpublished stands for the health of an endpoint that data planes do not get. It does not
// count.
const unpublished = health.Status(255)

// Published is an endpoint's form for data planes.
type Published struct {
	Present  bool // data planes get it
	Status   health.Status
	Priority uint8
	Weight   uint32
}

// PanicChange is the beginning or the end of a panic for a cluster.
type PanicChange struct {
	Name, Text string // Text explains a beginning
	Since      time.Time
	Over       bool
}

// NewPanics makes Panics that know no cluster.
func NewPanics() *Panics {
	return &Panics{clusters: map[string]*panicState{}, dirty: map[string]*panicState{}}
}

// SetCluster sets the rules and all endpoints of a cluster. It calls endpoint for each index below count.
func (p *Panics) SetCluster(name string, rules rules.PanicRules, count int, endpoint func(index int) Published) {
	k := p.clusters[name]
	if k == nil {
		if k = p.dirty[name]; k == nil { // otherwise it was removed just now
			k = &panicState{}
		}
		p.clusters[name] = k
	}
	k.rules, k.priorities, k.statuses = rules, nil, slices.Repeat([]health.Status{unpublished}, count)
	for i := range k.statuses {
		k.set(i, endpoint(i))
	}
	p.dirty[name] = k
}

// SetEndpoint sets an endpoint's form for data planes. It ignores unknown clusters and indices.
func (p *Panics) SetEndpoint(name string, index int, e Published) {
	if k := p.clusters[name]; k != nil && index < len(k.statuses) {
		k.set(index, e)
		p.dirty[name] = k
	}
}

// set counts an endpoint in place of its previous status. Its priority and weight stay the
// same.
func (k *panicState) set(index int, e Published) {
	for int(e.Priority) >= len(k.priorities) {
		k.priorities = append(k.priorities, rules.Hosts{})
	}
	hosts := &k.priorities[e.Priority]
	if previous := k.statuses[index]; previous != unpublished {
		hosts.Add(int32(previous), e.Weight, -1)
	}
	if k.statuses[index] = unpublished; e.Present {
		k.statuses[index] = e.Status
		hosts.Add(int32(e.Status), e.Weight, 1)
	}
}

// isDown reports whether all endpoints are down.
func (k *panicState) isDown() bool {
	return !slices.ContainsFunc(k.priorities, func(h rules.Hosts) bool { return h.Healthy+h.Degraded+h.Excluded > 0 })
}

// Remove forgets a cluster.
func (p *Panics) Remove(name string) {
	if k := p.clusters[name]; k != nil {
		delete(p.clusters, name)
		k.priorities, p.dirty[name] = nil, k
	}
}

// Explain returns the reason why Envoys are in panic for a cluster, also for one that is wholly
// down; empty if they are not. start is zero unless Take has returned the beginning.
func (p *Panics) Explain(name string) (text string, start time.Time) {
	if k := p.clusters[name]; k != nil {
		return k.rules.Explain(k.priorities, false), k.start
	}
	return "", time.Time{}
}

// Count returns the number of clusters for which Envoys are in panic, as of the last Take.
func (p *Panics) Count() int { return p.count }

// Take returns the changes since its last call.
func (p *Panics) Take(now time.Time) (changes []PanicChange) {
	for _, name := range slices.Sorted(maps.Keys(p.dirty)) {
		k := p.dirty[name]
		panics := len(k.rules.Panics(k.priorities)) > 0 && !k.isDown()
		if panics == !k.start.IsZero() {
			continue
		}
		change := PanicChange{Name: name, Since: k.start, Over: !panics}
		if k.start = (time.Time{}); panics {
			k.start, change.Since, change.Text = now, now, k.rules.Explain(k.priorities, false)
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
	return notify.Change{Ended: c.Over, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.Panic, Cluster: c.Name}, Since: c.Since, Command: attention.Cluster(c.Name),
		Text: fmt.Sprintf("cluster %s: %s", c.Name, c.Text),
	}}
}
