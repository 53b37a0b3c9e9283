package hold

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/source"
)

// Rule bounds losses and their holding time. The zero Rule holds nothing.
type Rule struct {
	Share float64 // of clusters or endpoints: larger losses are held
	For   time.Duration
}

// Off reports whether nothing is held.
func (r Rule) Off() bool { return r.Share <= 0 || r.Share >= 1 || r.For <= 0 }

// large is the number of endpoints from which on a cluster counts by itself.
const large = 10

// Hold is the set in use of one source.
type Hold struct {
	rule     Rule
	reported *source.Set // the latest of the source
	inUse    *source.Set // nil before the first
	count    counts      // of inUse; only kept while the rule is on
	peaks    peaks       // of count
	removals map[string]*removal

	dueAt    time.Time // time when the first of them is accepted automatically
	start    time.Time // time of the oldest held loss
	restored time.Time // time of the restore; zero: there was none
	revision uint64
}

// removal is the held part of one cluster.
type removal struct {
	kept      *source.Cluster      // the version in use at the loss
	cluster   time.Time            // time when the cluster itself was removed; zero: it was not
	endpoints map[string]time.Time // by address: time of the removal

	reported, built *source.Cluster // the source's cluster at the last build, and its result
	seen            *source.Cluster // the source's cluster at the last release
}

// New returns an empty Hold.
func New(rule Rule) *Hold { return &Hold{rule: rule, removals: map[string]*removal{}} }

// Configure replaces the rule, from the next Apply on.
func (h *Hold) Configure(rule Rule) {
	if h.rule != rule {
		h.rule, h.reported = rule, nil
		h.count, h.peaks = countsOf(h.inUse), peaks{}
		h.plan()
	}
}

// Apply adds the present set of the source, and returns the set in use. wanted reports whether a
// removed lone assignment of the source is in use; nil: all are.
func (h *Hold) Apply(now time.Time, set *source.Set, wanted func(service string) bool) *source.Set {
	if set == h.reported && !h.due(now) && !h.unwanted(wanted) {
		return h.inUse
	}
	if h.rule.Off() {
		clear(h.removals)
		h.reported, h.inUse, h.count, h.peaks = set, set, counts{}, peaks{}
		h.plan()
		return set
	}
	losses := h.missing(set, wanted)
	if set.Answered() {
		h.release(set)
	}
	slot := h.peaks.slot(now, h.rule)
	h.hold(now, slot, losses)
	accepted := h.expire(now)
	h.reported = set
	before := h.count
	previous := h.use(set)
	h.peaks.note(slot, &before, &h.count, previous)
	for _, name := range accepted {
		h.peaks.forget(name)
	}
	h.plan()
	return h.inUse
}

// due reports whether a holding time has ended.
func (h *Hold) due(now time.Time) bool { return !h.dueAt.IsZero() && !now.Before(h.dueAt) }

// Due returns when Apply has to be called even without news; zero is never.
func (h *Hold) Due() time.Time { return h.dueAt }

// Accept follows the source. It returns the set in use afterwards.
func (h *Hold) Accept() *source.Set {
	if len(h.removals) == 0 {
		return h.inUse
	}
	clear(h.removals)
	h.use(h.reported)
	h.peaks = peaks{}
	h.plan()
	return h.inUse
}

// Status is the size of the set in use, and of the rest after the held loss.
type Status struct {
	Clusters, Endpoints int

	// Held is nil if nothing is held.
	Held *Held
}

// Held is the rest after the held loss is accepted.
type Held struct {
	Since               time.Time // of the oldest loss
	AcceptsAt           time.Time // time of its automatic acceptance
	Clusters, Endpoints int
	Revision            string
}

// Status returns the present size.
func (h *Hold) Status() Status {
	if h.count.byCluster == nil {
		h.count = countsOf(h.inUse)
	}
	s := Status{Clusters: h.count.clusters, Endpoints: h.count.endpoints}
	if s.Held = h.Held(); s.Held == nil {
		return s
	}
	s.Held.Clusters, s.Held.Endpoints = s.Clusters, s.Endpoints
	for _, t := range h.removals {
		if !t.cluster.IsZero() && !t.kept.Lone {
			s.Held.Clusters--
		}
		s.Held.Endpoints -= len(t.endpoints)
	}
	s.Held.Clusters, s.Held.Endpoints = max(0, s.Held.Clusters), max(0, s.Held.Endpoints)
	return s
}

// missing returns the parts in use that a set lacks, by cluster.
func (h *Hold) missing(set *source.Set, wanted func(string) bool) map[string]*loss {
	losses := map[string]*loss{}
	if h.inUse == nil {
		return losses
	}
	changed, removed := source.Changes(h.inUse.Clusters, set.Clusters)
	for _, before := range removed {
		if before.Lone && set.Answered() && wanted != nil && !wanted(before.ServiceName) {
			delete(h.removals, before.Name)
			h.peaks.forget(before.Name)
			continue
		}
		losses[before.Name] = &loss{before: before, cluster: true, endpoints: addresses(before)}
	}
	for _, after := range changed {
		before := h.inUse.Find(after.Name)
		if before == nil {
			continue
		}
		if t := h.removals[after.Name]; t != nil && t.reported == after && t.built == before {
			losses[after.Name] = &loss{before: before, endpoints: setOf(t.endpoints)}
			continue
		}
		if after.Rejected != "" && after.Assignment == nil {
			continue // its last valid version stays in use
		}
		if lost := removedAddresses(before, after); len(lost) > 0 {
			losses[after.Name] = &loss{before: before, endpoints: lost}
		}
	}
	return losses
}

// loss is the part of one cluster that a set lacks.
type loss struct {
	before    *source.Cluster
	cluster   bool // all of it
	endpoints map[string]struct{}
}

// hold holds losses that are too large.
func (h *Hold) hold(now time.Time, slot int64, losses map[string]*loss) {
	clusters, endpoints := 0, 0
	for _, l := range losses {
		endpoints += len(l.endpoints)
		if l.cluster && !l.before.Lone {
			clusters++
		}
	}
	whole := h.exceeds(clusters, h.count.clusters, h.peaks.clusters.largest(slot, h.count.clusters)) ||
		h.exceeds(endpoints, h.count.endpoints, h.peaks.endpoints.largest(slot, h.count.endpoints))
	for name, l := range losses {
		size, falls := h.count.byCluster[name].endpoints, h.peaks.byCluster[name]
		peak := falls.largest(slot, size)
		if whole || peak >= large && h.exceeds(len(l.endpoints), size, peak) || l.cluster && h.removals[name] != nil {
			h.record(now, name, l)
		}
	}
}

// exceeds reports whether a loss is too large, compared with the set in use or the recent
// maximum.
func (h *Hold) exceeds(lost, total, peak int) bool {
	return lost > 0 && (float64(lost) > h.rule.Share*float64(total) || float64(peak-total+lost) > h.rule.Share*float64(peak))
}

// record holds the loss of a cluster. Parts already held keep their time.
func (h *Hold) record(now time.Time, name string, l *loss) {
	t := h.removals[name]
	if t == nil {
		t = &removal{endpoints: make(map[string]time.Time, len(l.endpoints))}
		h.removals[name] = t
	}
	isNew := l.cluster && t.cluster.IsZero()
	if isNew {
		t.cluster = now
	}
	for address := range l.endpoints {
		if _, ok := t.endpoints[address]; !ok {
			t.endpoints[address], isNew = now, true
		}
	}
	if isNew { // the cluster in use has all held parts
		t.kept, t.reported, t.built = l.before, nil, nil
	}
}

// release ends the hold of parts that the source has again.
func (h *Hold) release(set *source.Set) {
	for name, t := range h.removals {
		c := set.Find(name)
		if c == nil || c == t.seen {
			continue
		}
		before := len(t.endpoints)
		forEachAddress(c, func(address string) { delete(t.endpoints, address) })
		if !t.cluster.IsZero() || len(t.endpoints) != before {
			t.built = nil
		}
		t.cluster, t.seen = time.Time{}, c
		h.drop(name)
	}
}

// expire accepts losses held for their time. It returns their clusters.
func (h *Hold) expire(now time.Time) (accepted []string) {
	if !h.due(now) {
		return nil
	}
	expired := func(start time.Time) bool { return !start.IsZero() && now.Sub(start) >= h.rule.For }
	for name, t := range h.removals {
		before := len(t.endpoints)
		maps.DeleteFunc(t.endpoints, func(_ string, start time.Time) bool { return expired(start) })
		if expired(t.cluster) {
			delete(h.removals, name)
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

// drop forgets a cluster without held parts.
func (h *Hold) drop(name string) {
	if t := h.removals[name]; t.cluster.IsZero() && len(t.endpoints) == 0 {
		delete(h.removals, name)
	}
}

// unwanted reports whether a held assignment is no longer in use.
func (h *Hold) unwanted(wanted func(string) bool) bool {
	if wanted == nil || h.reported == nil || !h.reported.Answered() {
		return false
	}
	for _, t := range h.removals {
		if t.kept.Lone && !t.cluster.IsZero() && !wanted(t.kept.ServiceName) {
			return true
		}
	}
	return false
}

// use puts a set with the held parts into use. It returns the previous sizes of changed
// clusters.
func (h *Hold) use(set *source.Set) map[string]size {
	before := h.inUse
	h.inUse = set
	if len(h.removals) > 0 {
		replacements := make(map[string]*source.Cluster, len(h.removals))
		for name, t := range h.removals {
			reported := set.Find(name)
			if reported == nil && t.cluster.IsZero() { // unknown after a restart
				if set.Answered() {
					delete(h.removals, name)
				}
				continue
			}
			replacements[name] = t.build(reported)
		}
		copied := *set
		copied.Clusters = source.Amend(set.Clusters, replacements)
		h.inUse = &copied
	}
	if h.count.byCluster == nil {
		h.count = countsOf(h.inUse)
		return nil
	}
	return h.count.update(before, h.inUse)
}

// plan computes the next due time, and the revision of the present state.
func (h *Hold) plan() {
	h.start, h.revision = time.Time{}, 0
	note := func(start time.Time, cluster, address string) {
		if start.IsZero() {
			return
		}
		if h.start.IsZero() || start.Before(h.start) {
			h.start = start
		}
		h.revision += hash(cluster, address)
	}
	for name, t := range h.removals {
		note(t.cluster, name, "")
		for address, start := range t.endpoints {
			note(start, name, address)
		}
	}
	if h.dueAt = (time.Time{}); !h.start.IsZero() {
		h.dueAt = h.start.Add(h.rule.For)
		if earliest := h.restored.Add(min(atLeast, h.rule.For)); h.dueAt.Before(earliest) {
			h.dueAt = earliest
		}
	}
}

// Holds reports whether anything is held.
func (h *Hold) Holds() bool { return len(h.removals) > 0 }

// Held returns the held loss without counting the rest, or nil.
func (h *Hold) Held() *Held {
	if !h.Holds() {
		return nil
	}
	return &Held{Since: h.start, AcceptsAt: h.dueAt, Revision: fmt.Sprintf("%016x", h.revision)}
}

// Names returns the clusters with held parts, in order.
func (h *Hold) Names() []string { return slices.Sorted(maps.Keys(h.removals)) }

// Saved is the held part of one cluster, to be kept over a restart.
type Saved struct {
	Cluster   *source.Cluster
	Taken     time.Time            // time when the cluster itself was removed; zero: it was not
	Endpoints map[string]time.Time // by address: time of the removal
}

// Save returns the held parts, by cluster.
func (h *Hold) Save() []Saved {
	var saved []Saved
	for _, name := range h.Names() {
		t := h.removals[name]
		c := *t.kept
		c.Assignment = t.loneAssignment()
		saved = append(saved, Saved{Cluster: &c, Taken: t.cluster, Endpoints: maps.Clone(t.endpoints)})
	}
	return saved
}

// atLeast is the least holding time after a restart. The clock may have been wrong before, or be
// wrong now.
const atLeast = time.Minute

// Restore holds the parts held before a restart. Call it before the first Apply.
func (h *Hold) Restore(now time.Time, saved []Saved) {
	h.restored = now
	bounded := func(start time.Time) time.Time {
		if start.After(now) { // the clock was set back
			return now
		}
		return start
	}
	for _, s := range saved {
		t := &removal{kept: s.Cluster, cluster: bounded(s.Taken), endpoints: make(map[string]time.Time, len(s.Endpoints))}
		for address, start := range s.Endpoints {
			t.endpoints[address] = bounded(start)
		}
		h.removals[s.Cluster.Name] = t
		h.drop(s.Cluster.Name)
	}
	h.plan()
}
