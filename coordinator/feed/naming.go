package feed

import (
	"slices"
	"sync/atomic"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/names"
)

// naming puts addresses in the place of names, for the sources with resolve_names.
// Guarded by Intake.mu, but for awaited.
type naming struct {
	resolver *names.Resolver // nil: nothing is resolved
	by       map[string]*named
	awaited  atomic.Pointer[[]string] // sources with names that were never resolved so far
}

// named is what is known of a source with resolve_names.
type named struct {
	rewriter names.Rewriter
	clusters map[names.Question][]string // by what they need to know
	set      *source.Set                 // that was translated last
	serial   uint64                      // of the answers that it was translated by
	out      *source.Set
}

func newNaming() *naming { return &naming{by: map[string]*named{}} }

// resolving returns the sources with resolve_names.
func resolving(c *configv1.Config) map[string]bool {
	all := map[string]bool{}
	for _, one := range c.GetSources() {
		if one.GetResolveNames() {
			all[one.GetName()] = true
		}
	}
	return all
}

// configure says which sources have their names resolved.
func (n *naming) configure(sources map[string]bool) {
	for name := range n.by {
		if !sources[name] {
			delete(n.by, name)
			n.resolver.Need(name, nil)
		}
	}
	for name := range sources {
		if n.by[name] == nil && n.resolver != nil {
			n.by[name] = &named{}
		}
	}
}

// take returns a set with addresses in the place of names.
func (n *naming) take(set *source.Set) *source.Set {
	one := n.by[set.Source]
	if one == nil {
		return set
	}
	if set != one.set {
		questions, clusters := names.Questions(set)
		one.clusters = clusters
		n.resolver.Need(set.Source, questions)
	} else if n.resolver.Serial() == one.serial {
		return one.out
	}
	one.set, one.serial = set, n.resolver.Serial()
	one.out = one.rewriter.Take(set, n.resolver.Answer)
	return one.out
}

// awaits reports whether a source has names that were never resolved so far.
func (n *naming) awaits(name string) bool {
	one := n.by[name]
	return one != nil && one.out != nil && one.out.Awaited
}

// share publishes the sources that await their names.
func (n *naming) share() {
	var all []string
	for name := range n.by {
		if n.awaits(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	n.awaited.Store(&all)
}

// Unresolved returns the sources with names that were never resolved so far, without
// waiting.
func (in *Intake) Unresolved() []string {
	if all := in.dns.awaited.Load(); all != nil {
		return *all
	}
	return nil
}

// Resolve makes the Intake resolve the names of some sources from its next Restart on.
func (in *Intake) Resolve(sources map[string]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dns.configure(sources)
}

// renamed takes over what DNS says now.
func (in *Intake) renamed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.rules != nil {
		in.merge(false)
	}
}
