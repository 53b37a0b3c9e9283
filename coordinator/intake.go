package coordinator

import (
	"context"
	"slices"
	"sync"

	"hdsd/coordinator/catalog"
	"hdsd/source"
)

// intake turns what the sources say into prepared clusters and posts what
// changed to the core.
type intake struct {
	post func(delivery)
	want func(source string, names []string) // says which assignments others' clusters take; nil: nobody is told
	// pending tells whether a source has yet to answer about these; nil: none has.
	pending func(source string) bool

	mu       sync.Mutex // the order of posts is the order of changes
	rules    *catalog.Rules
	names    []string                    // of the sources, in order of precedence
	readers  map[string]reader           // by source
	standing map[string]standing         // by source: what holds of it
	catalog  *source.Catalog             // the latest
	prepared map[string]*catalog.Cluster // by name
	lacking  map[string]lack             // by name: clusters that take endpoints from other sources, or would
	wanted   map[string][]string         // by source: what want was told last
}

// reader is a source as it was opened. What it says comes in the order in which
// it reads: Latest is never older than what it handed on before.
type reader interface {
	Latest() *source.Set
	Run(ctx context.Context, take func(*source.Set)) error
}

// standing is what holds of a source, and which one said it.
type standing struct {
	by  reader
	set *source.Set
}

// delivery is one change of the clusters.
type delivery struct {
	rules    *catalog.Rules
	unread   bool            // a source has not said yet what it was asked
	heard    map[string]bool // sources that have
	changed  []change        // new or other than before
	removed  []string
	problems []source.Problem
}

// change is a cluster that is new or differs.
type change struct {
	cluster *catalog.Cluster
	renewed []bool // endpoints of cluster.safe that checkers take for others; nil: none
}

func newIntake(post func(delivery)) *intake {
	return &intake{
		post: post, catalog: &source.Catalog{}, prepared: map[string]*catalog.Cluster{}, lacking: map[string]lack{}, wanted: map[string][]string{},
	}
}

// take accepts what a source says now. One that another took the place of says
// nothing any more.
func (in *intake) take(by reader, set *source.Set) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.readers[set.Source] != by {
		return
	}
	in.standing[set.Source] = in.standing[set.Source].then(standing{by, set})
	in.deliver(false)
}

// then gives what holds of a source after it says more. Of one that does not
// know yet what there is, what another of its name said stays.
func (s standing) then(now standing) standing {
	switch {
	case s.by == now.by, now.set.Answered(), s.set == nil:
		return now
	case s.set.Answered(), len(now.set.Clusters) == 0 && len(s.set.Clusters) > 0:
		return s
	default:
		return now
	}
}

// restart replaces the rules, and the sources by others. Each is asked for its
// latest here, under the lock that what it hands on meanwhile waits for: so
// nothing that it said since it was opened is undone.
func (in *intake) restart(readers []reader, r *catalog.Rules) {
	in.mu.Lock()
	defer in.mu.Unlock()
	before := in.standing
	in.rules, in.names, in.readers, in.standing, in.wanted = r, nil, map[string]reader{}, map[string]standing{}, map[string][]string{}
	for _, by := range readers {
		set := by.Latest()
		in.names = append(in.names, set.Source)
		in.readers[set.Source] = by
		in.standing[set.Source] = before[set.Source].then(standing{by, set})
	}
	in.deliver(true)
}

// deliver prepares what changed, or what the rules have changed for, and posts
// it.
func (in *intake) deliver(restarted bool) {
	sets := make([]*source.Set, len(in.names))
	for i, name := range in.names {
		sets[i] = in.standing[name].set
	}
	merged := source.Merge(in.catalog, sets, in.rules.DefaultHealthChecks)
	changed, removed := source.Changes(in.catalog.Clusters, merged.Clusters)
	in.catalog = merged
	stirred := in.follow(changed, removed) || restarted
	if restarted {
		changed = merged.Clusters
	}
	if in.want != nil && stirred {
		in.ask()
	}
	heard := in.heard()
	d := delivery{rules: in.rules, unread: len(heard) < len(in.names), heard: heard, problems: merged.Problems}
	for _, c := range changed {
		before := in.prepared[c.Name]
		if before != nil && before.Latest == c && before.UpToDate(in.rules) {
			continue
		}
		after := (*catalog.Cluster)(nil)
		if c.Quarantine != "" {
			after = catalog.PrepareRejected(c, before, in.rules)
		} else {
			after = catalog.Prepare(c, in.rules)
		}
		in.prepared[c.Name] = after
		d.changed = append(d.changed, change{after, catalog.ChangedProbes(before, after)})
	}
	for _, c := range removed {
		delete(in.prepared, c.Name)
		d.removed = append(d.removed, c.Name)
	}
	in.post(d)
}

// heard are the sources that have said all that they were asked.
func (in *intake) heard() map[string]bool {
	all := make(map[string]bool, len(in.names))
	for _, name := range in.names {
		if in.standing[name].set.Answered() && (in.pending == nil || !in.pending(name)) {
			all[name] = true
		}
	}
	return all
}

// lack is a cluster that takes endpoints from other sources than its own.
type lack struct{ source, service string }

// follow keeps which clusters do, and tells whether others do now.
func (in *intake) follow(changed, removed []*source.Cluster) (stirred bool) {
	for _, c := range removed {
		stirred = in.lacking[c.Name] != (lack{}) || stirred
		delete(in.lacking, c.Name)
	}
	for _, c := range changed {
		now := lack{}
		if lacking(c) {
			now = lack{c.Source, c.ServiceName}
		}
		if in.lacking[c.Name] == now {
			continue
		}
		stirred = true
		if in.lacking[c.Name] = now; now == (lack{}) {
			delete(in.lacking, c.Name)
		}
	}
	return stirred
}

// ask has each source asked for the assignments that clusters of the others
// take their endpoints from.
func (in *intake) ask() {
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
		if told, ok := in.wanted[name]; !ok || !slices.Equal(names, told) {
			in.want(name, names)
			in.wanted[name] = names
		}
	}
}

// lacking tells whether a cluster takes its endpoints from another source than
// its own, or would. Files that it names are those of data planes' machines.
func lacking(c *source.Cluster) bool {
	from := c.Config.GetEdsClusterConfig().GetEdsConfig()
	return c.EDS() && (c.Assignment == nil || c.AssignmentSource != "") &&
		from.GetPathConfigSource() == nil && from.GetPath() == "" //nolint:staticcheck // to leave it alone
}
