package coordinator

import (
	"sync"

	"hdsd/source"
)

// intake turns what the sources say into prepared clusters and posts what
// changed to the core.
type intake struct {
	post func(delivery)

	mu       sync.Mutex // the order of posts is the order of changes
	rules    *rules
	names    []string               // of the sources, in order of precedence
	sets     map[string]*source.Set // by source
	catalog  *source.Catalog        // the latest
	prepared map[string]*cluster    // by name
}

// delivery is one change of the clusters.
type delivery struct {
	rules    *rules
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
	return &intake{post: post, prepared: map[string]*cluster{}}
}

// take accepts what a source says now.
func (in *intake) take(set *source.Set) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sets[set.Source] = set
	in.deliver()
}

// restart replaces the rules, and the sources by what others say.
func (in *intake) restart(sets []*source.Set, r *rules) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rules, in.names, in.sets = r, nil, map[string]*source.Set{}
	for _, set := range sets {
		in.names = append(in.names, set.Source)
		in.sets[set.Source] = set
	}
	in.deliver()
}

// deliver prepares what changed, or what the rules have changed for, and posts
// it.
func (in *intake) deliver() {
	var sets []*source.Set
	for _, name := range in.names {
		if set := in.sets[name]; set != nil {
			sets = append(sets, set)
		}
	}
	catalog := source.Merge(in.catalog, sets, in.rules.defaults)
	in.catalog = catalog
	d := delivery{rules: in.rules, problems: catalog.Problems}
	present := make(map[string]*cluster, len(catalog.Clusters))
	for _, c := range catalog.Clusters {
		before := in.prepared[c.Name]
		if before != nil && before.seen == c && before.follows(in.rules) {
			present[c.Name] = before
			continue
		}
		after := (*cluster)(nil)
		if c.Quarantine != "" {
			after = before.goOn(c, in.rules)
		} else {
			after = prepare(c, in.rules)
		}
		present[c.Name] = after
		d.changed = append(d.changed, change{after, renewed(before, after)})
	}
	for name := range in.prepared {
		if present[name] == nil {
			d.removed = append(d.removed, name)
		}
	}
	in.prepared = present
	in.post(d)
}
