package feed

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hdsd/catalog"
	"hdsd/source"
	"hdsd/source/hold"
)

// Intake merges the sources and prepares the changed clusters.
type Intake struct {
	// Now returns the time. It may be set before any other use.
	Now func() time.Time

	// These fields are set once.
	deliver func(catalog.Delivery)
	asker   Asker // may be nil
	log     zerolog.Logger

	problems problemLog                    // written with mu held
	held     atomic.Pointer[[]SourceState] // written with mu held
	moved    chan struct{}                 // the next tick may be due at another time

	mu        sync.Mutex // makes deliveries come in the order of the changes
	rules     *catalog.Rules
	names     []string            // of the sources, in order of precedence
	readers   map[string]Reader   // by source
	latest    map[string]accepted // by source
	breakage  *breakage
	guards    *guards
	dns       *naming
	merged    *source.Catalog
	prepared  map[string]*catalog.Cluster // by name
	lacking   map[string]lack             // by name: clusters that use assignments of other sources, or would
	requested map[string][]string         // by source: the latest requested assignments
}

// Reader is an open source. It hands on sets in the order in which it reads them: Latest is
// never older than a set handed on before.
type Reader interface {
	Latest() *source.Set
	Run(ctx context.Context, deliver func(*source.Set)) error
}

// Asker asks a source for the assignments that clusters of other sources use.
type Asker interface {
	Want(source string, assignments []string)
	// Pending reports whether the source has yet to answer for some of them.
	Pending(source string) bool
}

// accepted is a set with its reader.
type accepted struct {
	reader Reader
	set    *source.Set
}

// NewIntake makes an Intake without sources.
func NewIntake(deliver func(catalog.Delivery), asker Asker, log zerolog.Logger) *Intake {
	return &Intake{
		Now: time.Now, deliver: deliver, asker: asker, log: log, problems: problemLog{log: log}, merged: &source.Catalog{}, prepared: map[string]*catalog.Cluster{},
		lacking: map[string]lack{}, requested: map[string][]string{}, guards: newGuards(log), breakage: newBreakage(log), dns: newNaming(), moved: make(chan struct{}, 1),
	}
}

// Take accepts a set of a source. It ignores a reader that Restart has replaced.
func (in *Intake) Take(reader Reader, set *source.Set) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.readers[set.Source] != reader {
		return
	}
	in.latest[set.Source] = in.latest[set.Source].replacedBy(accepted{reader, set})
	in.merge(false)
}

// replacedBy returns the set of a source to use after next has come. While a new reader does
// not know the source's clusters, the last set of the previous reader stays.
func (a accepted) replacedBy(next accepted) accepted {
	switch {
	case a.reader == next.reader, next.set.Answered(), a.set == nil:
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
	in.guards.configure(rules)
	previous := in.latest
	in.rules, in.names = r, nil
	in.breakage.sets = map[string]*source.Set{}
	in.readers, in.latest, in.requested = map[string]Reader{}, map[string]accepted{}, map[string][]string{}
	for _, reader := range readers {
		set := reader.Latest()
		in.names = append(in.names, set.Source)
		in.readers[set.Source] = reader
		in.latest[set.Source] = previous[set.Source].replacedBy(accepted{reader, set})
	}
	in.breakage.configure(in.names)
	in.merge(true)
}

// merge merges the sources, prepares the clusters that changed or whose rules changed, and
// delivers them.
func (in *Intake) merge(restarted bool) {
	previous, now := in.merged, in.Now()
	in.merged = source.Merge(previous, in.inUse(now), in.rules.DefaultHealthChecks)
	changed, removed := source.Changes(previous.Clusters, in.merged.Clusters)
	lackChanged := in.trackLacking(changed, removed)
	if lackChanged { // unwanted resources are not held
		middle := in.merged
		in.merged = source.Merge(middle, in.inUse(now), in.rules.DefaultHealthChecks)
		in.trackLacking(source.Changes(middle.Clusters, in.merged.Clusters))
		changed, removed = source.Changes(previous.Clusters, in.merged.Clusters)
	}
	in.shareHeld()
	if in.asker != nil && (lackChanged || restarted) {
		in.ask()
	}
	if restarted {
		changed = in.merged.Clusters
	}
	answered := in.answered()
	d := catalog.Delivery{Rules: in.rules, Answered: answered, Complete: len(answered) == len(in.names)}
	in.problems.update(in.merged.Problems)
	for _, change := range in.prepareAll(changed) {
		cluster := change.Cluster
		logChecks(in.log, in.prepared[cluster.Latest.Name], cluster)
		in.prepared[cluster.Latest.Name] = cluster
		d.Changed = append(d.Changed, change)
	}
	for _, c := range removed {
		delete(in.prepared, c.Name)
		d.Removed = append(d.Removed, c.Name)
	}
	in.publishBroken(now)
	in.deliver(d)
}

// inUse returns the set in use of each source, in the order of precedence.
func (in *Intake) inUse(now time.Time) []*source.Set {
	sets := make([]*source.Set, len(in.names))
	for i, name := range in.names {
		sets[i] = in.dns.translate(in.guards.filter(now, in.latest[name].set, in.wanted(name)))
		in.breakage.sets[name] = sets[i]
	}
	in.dns.share()
	return sets
}

// prepareAll prepares the outdated clusters, on all processors.
func (in *Intake) prepareAll(clusters []*source.Cluster) []catalog.Change {
	var todo []*source.Cluster
	for _, c := range clusters {
		if previous := in.prepared[c.Name]; previous == nil || previous.Latest != c || !previous.UpToDate(in.rules) {
			todo = append(todo, c)
		}
	}
	changes := make([]catalog.Change, len(todo))
	var counter atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)) {
		workers.Go(func() {
			for i := int(counter.Add(1) - 1); i < len(todo); i = int(counter.Add(1) - 1) {
				previous := in.prepared[todo[i].Name]
				cluster := prepare(previous, todo[i], in.rules)
				changes[i] = catalog.Change{Cluster: cluster, Renewed: catalog.ChangedProbes(previous, cluster)}
			}
		})
	}
	workers.Wait()
	return changes
}

func prepare(previous *catalog.Cluster, c *source.Cluster, rules *catalog.Rules) *catalog.Cluster {
	if c.Rejected != "" {
		return catalog.PrepareRejected(c, previous, rules)
	}
	return catalog.Prepare(c, rules)
}

// answered returns the sources that have answered in full.
func (in *Intake) answered() map[string]bool {
	sources := make(map[string]bool, len(in.names))
	for _, name := range in.names {
		if in.latest[name].set.Answered() && !in.dns.awaits(name) && (in.asker == nil || !in.asker.Pending(name)) {
			sources[name] = true
		}
	}
	return sources
}

// lack is the source of a cluster, and the assignment that it needs of another.
type lack struct{ source, service string }

// trackLacking records the clusters that need assignments of other sources, and reports whether
// they changed.
func (in *Intake) trackLacking(changed, removed []*source.Cluster) (changedAny bool) {
	for _, c := range removed {
		changedAny = in.lacking[c.Name] != (lack{}) || changedAny
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
		changedAny = true
		if in.lacking[c.Name] = now; now == (lack{}) {
			delete(in.lacking, c.Name)
		}
	}
	return changedAny
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
		if requested, ok := in.requested[name]; !ok || !slices.Equal(names, requested) {
			in.asker.Want(name, names)
			in.requested[name] = names
		}
	}
}

// lacksAssignment reports whether a cluster takes its endpoints from another source than its
// own, or would. A file that it names is on the machines of data planes.
func lacksAssignment(c *source.Cluster) bool {
	eds := c.Config.GetEdsClusterConfig().GetEdsConfig()
	return c.EDS() && (c.Assignment == nil || c.AssignmentSource != "") &&
		eds.GetPathConfigSource() == nil && eds.GetPath() == "" //nolint:staticcheck // a deprecated field still counts
}
