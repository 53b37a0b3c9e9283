package hold

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/source"
)

// Rule says what to hold and for how long. The zero Rule holds nothing.
type Rule struct {
	Share float64 // of clusters or endpoints: what takes away more is held
	For   time.Duration
}

// Off reports whether nothing is held.
func (r Rule) Off() bool { return r.Share <= 0 || r.Share >= 1 || r.For <= 0 }

// large is the number of endpoints from which on a cluster is looked at by itself.
const large = 10

// Hold is what is in use of one source.
type Hold struct {
	rule  Rule
	said  *source.Set // the latest of the source
	inUse *source.Set // nil before the first
	count counts      // of inUse; only kept while the rule is on
	peaks peaks       // of count
	taken map[string]*taken

	next     time.Time // when the first of them is accepted by itself
	since    time.Time // since when that is held
	restored time.Time // when that was; zero: it was not
	revision uint64
}

// taken is what is held of one cluster.
type taken struct {
	kept      *source.Cluster      // as it was in use when it was taken away
	cluster   time.Time            // when the cluster itself was taken away; zero: it was not
	endpoints map[string]time.Time // by address: when it was taken away

	said, built *source.Cluster // the last cluster built of this, and what the source said then
	seen        *source.Cluster // what the source said when release last looked
}

// New returns a Hold that has nothing in use.
func New(rule Rule) *Hold { return &Hold{rule: rule, taken: map[string]*taken{}} }

// Configure replaces the rule. The next Take goes by it.
func (h *Hold) Configure(rule Rule) {
	if h.rule != rule {
		h.rule, h.said = rule, nil
		h.count, h.peaks = countsOf(h.inUse), peaks{}
		h.plan()
	}
}

// Take takes what the source says now, and returns what is in use. wanted tells whether
// anybody uses a lone assignment of the source that is no longer there; nil: all count.
func (h *Hold) Take(now time.Time, set *source.Set, wanted func(service string) bool) *source.Set {
	if set == h.said && !h.due(now) && !h.unwanted(wanted) {
		return h.inUse
	}
	if h.rule.Off() {
		clear(h.taken)
		h.said, h.inUse, h.count, h.peaks = set, set, counts{}, peaks{}
		h.plan()
		return set
	}
	gone := h.missing(set, wanted)
	if set.Answered() {
		h.release(set)
	}
	slot := h.peaks.slot(now, h.rule)
	h.hold(now, slot, gone)
	accepted := h.expire(now)
	h.said = set
	before := h.count
	was := h.use(set)
	h.peaks.note(slot, &before, &h.count, was)
	for _, name := range accepted {
		h.peaks.forget(name)
	}
	h.plan()
	return h.inUse
}

// due reports whether something was held for its time.
func (h *Hold) due(now time.Time) bool { return !h.next.IsZero() && !now.Before(h.next) }

// Due returns when Take has to be called even if the source says nothing; zero is
// never.
func (h *Hold) Due() time.Time { return h.next }

// Accept follows what the source says. It returns the set that is in use then.
func (h *Hold) Accept() *source.Set {
	if len(h.taken) == 0 {
		return h.inUse
	}
	clear(h.taken)
	h.use(h.said)
	h.peaks = peaks{}
	h.plan()
	return h.inUse
}

// Status is what is in use, and what would be left of it.
type Status struct {
	Clusters, Endpoints int

	// Held is nil if nothing is held.
	Held *Held
}

// Held is what is left if what is held is accepted.
type Held struct {
	Since               time.Time // of what is held longest
	AcceptsAt           time.Time // when that is accepted by itself
	Clusters, Endpoints int
	Revision            string
}

// Status returns how much is in use.
func (h *Hold) Status() Status {
	if h.count.by == nil {
		h.count = countsOf(h.inUse)
	}
	s := Status{Clusters: h.count.clusters, Endpoints: h.count.endpoints}
	if s.Held = h.Held(); s.Held == nil {
		return s
	}
	s.Held.Clusters, s.Held.Endpoints = s.Clusters, s.Endpoints
	for _, t := range h.taken {
		if !t.cluster.IsZero() && !t.kept.Lone {
			s.Held.Clusters--
		}
		s.Held.Endpoints -= len(t.endpoints)
	}
	s.Held.Clusters, s.Held.Endpoints = max(0, s.Held.Clusters), max(0, s.Held.Endpoints)
	return s
}

// missing returns what is in use and not in a set, by cluster.
func (h *Hold) missing(set *source.Set, wanted func(string) bool) map[string]*loss {
	gone := map[string]*loss{}
	if h.inUse == nil {
		return gone
	}
	changed, removed := source.Changes(h.inUse.Clusters, set.Clusters)
	for _, before := range removed {
		if before.Lone && set.Answered() && wanted != nil && !wanted(before.ServiceName) {
			delete(h.taken, before.Name)
			h.peaks.forget(before.Name)
			continue
		}
		gone[before.Name] = &loss{before: before, cluster: true, endpoints: addresses(before)}
	}
	for _, after := range changed {
		before := h.inUse.Find(after.Name)
		if before == nil {
			continue
		}
		if t := h.taken[after.Name]; t != nil && t.said == after && t.built == before {
			gone[after.Name] = &loss{before: before, endpoints: setOf(t.endpoints)}
			continue
		}
		if after.Rejected != "" && after.Assignment == nil {
			continue // its last valid version stays in use
		}
		if lost := without(before, after); len(lost) > 0 {
			gone[after.Name] = &loss{before: before, endpoints: lost}
		}
	}
	return gone
}

// loss is what a set takes away of one cluster.
type loss struct {
	before    *source.Cluster
	cluster   bool // all of it
	endpoints map[string]struct{}
}

// hold holds what is taken away, where that is too much.
func (h *Hold) hold(now time.Time, slot int64, gone map[string]*loss) {
	clusters, endpoints := 0, 0
	for _, l := range gone {
		endpoints += len(l.endpoints)
		if l.cluster && !l.before.Lone {
			clusters++
		}
	}
	all := h.exceeds(clusters, h.count.clusters, h.peaks.clusters.largest(slot, h.count.clusters)) ||
		h.exceeds(endpoints, h.count.endpoints, h.peaks.endpoints.largest(slot, h.count.endpoints))
	for name, l := range gone {
		size, falls := h.count.by[name].endpoints, h.peaks.by[name]
		peak := falls.largest(slot, size)
		if all || peak >= large && h.exceeds(len(l.endpoints), size, peak) || l.cluster && h.taken[name] != nil {
			h.take(now, name, l)
		}
	}
}

// exceeds reports whether too much would be lost, of what is in use or of the most that was
// in use lately.
func (h *Hold) exceeds(lost, of, peak int) bool {
	return lost > 0 && (float64(lost) > h.rule.Share*float64(of) || float64(peak-of+lost) > h.rule.Share*float64(peak))
}

// take holds what is taken away of a cluster. What is held already keeps its time.
func (h *Hold) take(now time.Time, name string, l *loss) {
	t := h.taken[name]
	if t == nil {
		t = &taken{endpoints: make(map[string]time.Time, len(l.endpoints))}
		h.taken[name] = t
	}
	more := l.cluster && t.cluster.IsZero()
	if more {
		t.cluster = now
	}
	for address := range l.endpoints {
		if _, known := t.endpoints[address]; !known {
			t.endpoints[address], more = now, true
		}
	}
	if more { // what was in use has all that is held
		t.kept, t.said, t.built = l.before, nil, nil
	}
}

// release ends the hold of what the source has again.
func (h *Hold) release(set *source.Set) {
	for name, t := range h.taken {
		c := set.Find(name)
		if c == nil || c == t.seen {
			continue
		}
		before := len(t.endpoints)
		each(c, func(address string) { delete(t.endpoints, address) })
		if !t.cluster.IsZero() || len(t.endpoints) != before {
			t.built = nil
		}
		t.cluster, t.seen = time.Time{}, c
		h.drop(name)
	}
}

// expire accepts what was held for its time. It returns the clusters of it.
func (h *Hold) expire(now time.Time) (accepted []string) {
	if !h.due(now) {
		return nil
	}
	over := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) >= h.rule.For }
	for name, t := range h.taken {
		before := len(t.endpoints)
		maps.DeleteFunc(t.endpoints, func(_ string, since time.Time) bool { return over(since) })
		if over(t.cluster) {
			delete(h.taken, name)
			accepted = append(accepted, name)
			continue
		}
		if len(t.endpoints) != before {
			t.built = nil
			accepted = append(accepted, name)
		}
		h.drop(name)
	}
	return accepted
}

// drop forgets a cluster of which nothing is held.
func (h *Hold) drop(name string) {
	if t := h.taken[name]; t.cluster.IsZero() && len(t.endpoints) == 0 {
		delete(h.taken, name)
	}
}

// unwanted reports whether an assignment is held that nobody wants any more.
func (h *Hold) unwanted(wanted func(string) bool) bool {
	if wanted == nil || h.said == nil || !h.said.Answered() {
		return false
	}
	for _, t := range h.taken {
		if t.kept.Lone && !t.cluster.IsZero() && !wanted(t.kept.ServiceName) {
			return true
		}
	}
	return false
}

// use puts into use what a set has and what is held. It returns what the clusters that have
// changed were.
func (h *Hold) use(set *source.Set) map[string]size {
	before := h.inUse
	h.inUse = set
	if len(h.taken) > 0 {
		with := make(map[string]*source.Cluster, len(h.taken))
		for name, t := range h.taken {
			said := set.Find(name)
			if said == nil && t.cluster.IsZero() { // not known again after a restart
				if set.Answered() {
					delete(h.taken, name)
				}
				continue
			}
			with[name] = t.build(said)
		}
		copied := *set
		copied.Clusters = source.Amend(set.Clusters, with)
		h.inUse = &copied
	}
	if h.count.by == nil {
		h.count = countsOf(h.inUse)
		return nil
	}
	return h.count.update(before, h.inUse)
}

// plan finds out when the next is due, and what the present state is called.
func (h *Hold) plan() {
	h.since, h.revision = time.Time{}, 0
	note := func(at time.Time, cluster, address string) {
		if at.IsZero() {
			return
		}
		if h.since.IsZero() || at.Before(h.since) {
			h.since = at
		}
		h.revision += hash(cluster, address)
	}
	for name, t := range h.taken {
		note(t.cluster, name, "")
		for address, at := range t.endpoints {
			note(at, name, address)
		}
	}
	if h.next = (time.Time{}); !h.since.IsZero() {
		h.next = h.since.Add(h.rule.For)
		if least := h.restored.Add(min(atLeast, h.rule.For)); h.next.Before(least) {
			h.next = least
		}
	}
}

// Holds reports whether anything is held.
func (h *Hold) Holds() bool { return len(h.taken) > 0 }

// Held returns what is held without counting what is left; nil if nothing is.
func (h *Hold) Held() *Held {
	if !h.Holds() {
		return nil
	}
	return &Held{Since: h.since, AcceptsAt: h.next, Revision: fmt.Sprintf("%016x", h.revision)}
}

// Names returns the clusters of which something is held, in order.
func (h *Hold) Names() []string { return slices.Sorted(maps.Keys(h.taken)) }

// Saved is what is held of one cluster, to be kept over a restart.
type Saved struct {
	Cluster   *source.Cluster
	Taken     time.Time            // when the cluster itself was taken away; zero: it was not
	Endpoints map[string]time.Time // by address: when it was taken away
}

// Save returns what is held, by cluster.
func (h *Hold) Save() []Saved {
	var all []Saved
	for _, name := range h.Names() {
		t := h.taken[name]
		c := *t.kept
		c.Assignment = t.only()
		all = append(all, Saved{Cluster: &c, Taken: t.cluster, Endpoints: maps.Clone(t.endpoints)})
	}
	return all
}

// atLeast is for how long what was held before a restart is held after it. The clock may
// have been wrong then, or be wrong now.
const atLeast = time.Minute

// Restore holds what was held before a restart. Call it before the first Take.
func (h *Hold) Restore(now time.Time, saved []Saved) {
	h.restored = now
	past := func(at time.Time) time.Time {
		if at.After(now) { // the clock was set back
			return now
		}
		return at
	}
	for _, s := range saved {
		t := &taken{kept: s.Cluster, cluster: past(s.Taken), endpoints: make(map[string]time.Time, len(s.Endpoints))}
		for address, at := range s.Endpoints {
			t.endpoints[address] = past(at)
		}
		h.taken[s.Cluster.Name] = t
		h.drop(s.Cluster.Name)
	}
	h.plan()
}
