package feed

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator/catalog"
	"hdsd/source"
	"hdsd/source/hold"
)

// Intake merges what the sources give and prepares the clusters that changed.
type Intake struct {
	// Now tells the time. Set it before anything else, if at all.
	Now func() time.Time

	// Set once.
	deliver func(Delivery)
	asker   Asker // may be nil
	log     zerolog.Logger

	problems problemLog                    // written with mu held
	held     atomic.Pointer[[]SourceState] // written with mu held
	moved    chan struct{}                 // the next tick may be due at another time

	mu       sync.Mutex // makes deliveries come in the order of the changes
	rules    *catalog.Rules
	names    []string            // of the sources, in order of precedence
	readers  map[string]Reader   // by source
	latest   map[string]accepted // by source
	breakage *breakage
	holds    *holds
	delays   *delays
	dns      *naming
	merged   *source.Catalog
	prepared map[string]*catalog.Cluster // by name
	lacking  map[string]lack             // by name: clusters that use assignments of other sources, or would
	asked    map[string][]string         // by source: the assignments that it was last asked for
}

// Reader is a source that is open. It hands on sets in the order in which it reads
// them: Latest is never older than a set handed on before.
type Reader interface {
	Latest() *source.Set
	Run(ctx context.Context, take func(*source.Set)) error
}

// Asker asks a source for the assignments that clusters of other sources use.
type Asker interface {
	Want(source string, assignments []string)
	// Pending tells whether the source has yet to answer for some of them.
	Pending(source string) bool
}

// accepted is a set and the reader that gave it.
type accepted struct {
	by  Reader
	set *source.Set
}

// Delivery is one change of the clusters.
type Delivery struct {
	Rules    *catalog.Rules
	Answered map[string]bool // sources that have answered all that they were asked
	Complete bool            // all of them have
	Changed  []Change        // clusters that are new or changed
	Removed  []string        // names of clusters
}

// Change is a cluster that is new or has changed.
type Change struct {
	Cluster *catalog.Cluster
	Renewed []bool // by endpoint of Cluster.Checked: checkers take it for a new one; nil if none
}

// NewIntake makes an Intake without sources.
func NewIntake(deliver func(Delivery), asker Asker, log zerolog.Logger) *Intake {
	return &Intake{
		Now: time.Now, deliver: deliver, asker: asker, log: log, problems: problemLog{log: log}, merged: &source.Catalog{}, prepared: map[string]*catalog.Cluster{},
		lacking: map[string]lack{}, asked: map[string][]string{}, holds: newHolds(log), breakage: newBreakage(log), delays: newDelays(log), dns: newNaming(), moved: make(chan struct{}, 1),
	}
}

// Take accepts a set of a source. It ignores a reader that Restart has replaced.
func (in *Intake) Take(by Reader, set *source.Set) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.readers[set.Source] != by {
		return
	}
	in.latest[set.Source] = in.latest[set.Source].replacedBy(accepted{by, set})
	in.merge(false)
}

// replacedBy returns the set of a source to use after next has come. While a new reader
// does not know the source's clusters, the last set of the reader before it stays.
func (a accepted) replacedBy(next accepted) accepted {
	switch {
	case a.by == next.by, next.set.Answered(), a.set == nil:
		return next
	case a.set.Answered(), len(next.set.Clusters) == 0 && len(a.set.Clusters) > 0:
		return a
	default:
		return next
	}
}

// Restart replaces the rules and the readers. It takes the latest set of each under
// the lock that Take waits for, so that it undoes nothing newer.
func (in *Intake) Restart(readers []Reader, r *catalog.Rules, rules map[string]hold.Rule) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.holds.configure(rules)
	in.delays.configure(rules)
	before := in.latest
	in.rules, in.names = r, nil
	in.breakage.sets = map[string]*source.Set{}
	in.readers, in.latest, in.asked = map[string]Reader{}, map[string]accepted{}, map[string][]string{}
	for _, by := range readers {
		set := by.Latest()
		in.names = append(in.names, set.Source)
		in.readers[set.Source] = by
		in.latest[set.Source] = before[set.Source].replacedBy(accepted{by, set})
	}
	in.breakage.configure(in.names)
	in.merge(true)
}

// merge merges the sources, prepares what changed or what the rules have changed
// for, and delivers it.
func (in *Intake) merge(restarted bool) {
	before, now := in.merged, in.Now()
	in.merged = source.Merge(before, in.inUse(now), in.rules.DefaultHealthChecks)
	changed, removed := source.Changes(before.Clusters, in.merged.Clusters)
	lackChanged := in.trackLacking(changed, removed)
	if lackChanged { // what nobody wants any more is not held
		middle := in.merged
		in.merged = source.Merge(middle, in.inUse(now), in.rules.DefaultHealthChecks)
		in.trackLacking(source.Changes(middle.Clusters, in.merged.Clusters))
		changed, removed = source.Changes(before.Clusters, in.merged.Clusters)
	}
	in.shareHeld()
	if in.asker != nil && (lackChanged || restarted) {
		in.ask()
	}
	if restarted {
		changed = in.merged.Clusters
	}
	answered := in.answered()
	d := Delivery{Rules: in.rules, Answered: answered, Complete: len(answered) == len(in.names)}
	in.problems.update(in.merged.Problems)
	for _, change := range in.prepareAll(changed) {
		after := change.Cluster
		logChecks(in.log, in.prepared[after.Latest.Name], after)
		in.prepared[after.Latest.Name] = after
		d.Changed = append(d.Changed, change)
	}
	for _, c := range removed {
		delete(in.prepared, c.Name)
		d.Removed = append(d.Removed, c.Name)
	}
	in.publishBroken(now)
	in.deliver(d)
}

// inUse returns what is in use of each source, in the order of precedence.
func (in *Intake) inUse(now time.Time) []*source.Set {
	sets := make([]*source.Set, len(in.names))
	for i, name := range in.names {
		sets[i] = in.dns.take(in.delays.take(now, in.holds.take(now, in.latest[name].set, in.wanted(name))))
		in.breakage.sets[name] = sets[i]
	}
	in.dns.share()
	return sets
}

// prepareAll prepares those of the clusters that are not up to date, on all processors.
func (in *Intake) prepareAll(clusters []*source.Cluster) []Change {
	var todo []*source.Cluster
	for _, c := range clusters {
		if before := in.prepared[c.Name]; before == nil || before.Latest != c || !before.UpToDate(in.rules) {
			todo = append(todo, c)
		}
	}
	changes := make([]Change, len(todo))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)) {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < len(todo); i = int(next.Add(1) - 1) {
				before := in.prepared[todo[i].Name]
				after := prepare(before, todo[i], in.rules)
				changes[i] = Change{after, catalog.ChangedProbes(before, after)}
			}
		})
	}
	workers.Wait()
	return changes
}

func prepare(before *catalog.Cluster, c *source.Cluster, rules *catalog.Rules) *catalog.Cluster {
	if c.Rejected != "" {
		return catalog.PrepareRejected(c, before, rules)
	}
	return catalog.Prepare(c, rules)
}

// answered gives the sources that have answered all that they were asked.
func (in *Intake) answered() map[string]bool {
	all := make(map[string]bool, len(in.names))
	for _, name := range in.names {
		if in.latest[name].set.Answered() && !in.dns.awaits(name) && (in.asker == nil || !in.asker.Pending(name)) {
			all[name] = true
		}
	}
	return all
}

// lack is the source of a cluster, and the assignment that it needs of another.
type lack struct{ source, service string }

// trackLacking keeps which clusters need assignments of other sources, and tells
// whether that has changed.
func (in *Intake) trackLacking(changed, removed []*source.Cluster) (other bool) {
	for _, c := range removed {
		other = in.lacking[c.Name] != (lack{}) || other
		delete(in.lacking, c.Name)
	}
	for _, c := range changed {
		now := lack{}
		if lacksAssignment(c) {
			now = lack{c.Source, c.ServiceName}
		}
		if in.lacking[c.Name] == now {
			continue
		}
		other = true
		if in.lacking[c.Name] = now; now == (lack{}) {
			delete(in.lacking, c.Name)
		}
	}
	return other
}

// ask asks each source for the assignments that clusters of the others need.
func (in *Intake) ask() {
	wanted := map[string][]string{}
	for _, c := range in.lacking {
		for _, name := range in.names {
			if name != c.source {
				wanted[name] = append(wanted[name], c.service)
			}
		}
	}
	for _, name := range in.names {
		slices.Sort(wanted[name])
		names := slices.Compact(wanted[name])
		if asked, ok := in.asked[name]; !ok || !slices.Equal(names, asked) {
			in.asker.Want(name, names)
			in.asked[name] = names
		}
	}
}

// lacksAssignment tells whether a cluster takes its endpoints from another source
// than its own, or would. A file that it names is on the machines of data planes.
func lacksAssignment(c *source.Cluster) bool {
	from := c.Config.GetEdsClusterConfig().GetEdsConfig()
	return c.EDS() && (c.Assignment == nil || c.AssignmentSource != "") &&
		from.GetPathConfigSource() == nil && from.GetPath() == "" //nolint:staticcheck // a deprecated field still counts
}
