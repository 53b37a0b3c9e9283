package coordinator

import (
	"slices"
	"sync"

	"hdsd/source"
)

// intake turns what the sources say into prepared clusters and posts what
// changed to the core.
type intake struct {
	post func(delivery)
	want func(source string, names []string) // says which assignments others' clusters take; nil: nobody is told

	mu       sync.Mutex // the order of posts is the order of changes
	rules    *rules
	names    []string               // of the sources, in order of precedence
	sets     map[string]*source.Set // by source
	catalog  *source.Catalog        // the latest
	prepared map[string]*cluster    // by name
	wanted   map[string][]string    // by source: what want was told last
}

// delivery is one change of the clusters.
type delivery struct {
	rules    *rules
	unread   bool     // a source has not said anything yet
	changed  []change // new or other than before
	removed  []string
	problems []source.Problem
}

// change is a cluster that is new or differs.
type change struct {
	cluster *cluster
	renewed []bool // endpoints of cluster.safe that checkers take for others; nil: none
}

func newIntake(post func(delivery)) *intake {
	return &intake{post: post, prepared: map[string]*cluster{}, wanted: map[string][]string{}}
}

// take accepts what a source says now.
func (in *intake) take(set *source.Set) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sets[set.Source] = later(in.sets[set.Source], set)
	in.deliver()
}

// later gives what holds of a source: what was said last, if anything was.
func later(before, now *source.Set) *source.Set {
	if before.Answered() && !now.Answered() {
		return before
	}
	return now
}

// restart replaces the rules, and the sources by others. Of one that says
// nothing yet, what another of its name said stays.
func (in *intake) restart(sets []*source.Set, r *rules) {
	in.mu.Lock()
	defer in.mu.Unlock()
	before := in.sets
	in.rules, in.names, in.sets, in.wanted = r, nil, map[string]*source.Set{}, map[string][]string{}
	for _, set := range sets {
		in.names = append(in.names, set.Source)
		in.sets[set.Source] = later(before[set.Source], set)
	}
	in.deliver()
}

// deliver prepares what changed, or what the rules have changed for, and posts
// it.
func (in *intake) deliver() {
	sets := make([]*source.Set, len(in.names))
	for i, name := range in.names {
		sets[i] = in.sets[name]
	}
	catalog := source.Merge(in.catalog, sets, in.rules.defaults)
	in.catalog = catalog
	d := delivery{rules: in.rules, unread: slices.ContainsFunc(sets, func(s *source.Set) bool { return !s.Answered() }), problems: catalog.Problems}
	for _, c := range catalog.Clusters {
		before := in.prepared[c.Name]
		if before != nil && before.seen == c && before.follows(in.rules) {
			continue
		}
		after := (*cluster)(nil)
		if c.Quarantine != "" {
			after = before.goOn(c, in.rules)
		} else {
			after = prepare(c, in.rules)
		}
		in.prepared[c.Name] = after
		d.changed = append(d.changed, change{after, renewed(before, after)})
	}
	d.removed = in.forget(catalog.Clusters)
	in.post(d)
	if in.want != nil {
		in.ask(catalog.Clusters)
	}
}

// ask has each source asked for the assignments that clusters of the others
// take their endpoints from.
func (in *intake) ask(clusters []*source.Cluster) {
	wanted := map[string][]string{}
	for _, c := range clusters {
		if !lacking(c) {
			continue
		}
		for _, name := range in.names {
			if name != c.Source {
				wanted[name] = append(wanted[name], c.ServiceName)
			}
		}
	}
	for _, name := range in.names {
		slices.Sort(wanted[name])
		names := slices.Compact(wanted[name])
		if !slices.Equal(names, in.wanted[name]) {
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

// forget lets go of what is not among the clusters any more, and names it.
func (in *intake) forget(clusters []*source.Cluster) (removed []string) {
	if len(in.prepared) == len(clusters) {
		return nil // as all of them are prepared
	}
	present := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		present[c.Name] = true
	}
	for name := range in.prepared {
		if !present[name] {
			delete(in.prepared, name)
			removed = append(removed, name)
		}
	}
	return removed
}
