package feed

import (
	"slices"
	"sync/atomic"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/names"
)

// naming replaces names by addresses, for the sources with resolve_names. Intake.mu guards it,
// except for awaited.
type naming struct {
	resolver *names.Resolver // nil: nothing is resolved
	bySource map[string]*named
	awaited  atomic.Pointer[[]string] // sources with names that were never resolved so far
}

// named is the state of a source with resolve_names.
type named struct {
	rewriter names.Rewriter
	clusters map[names.Question][]string // by their questions
	set      *source.Set                 // the latest translated set
	serial   uint64                      // of the answers used for it
	result   *source.Set
}

func newNaming() *naming { return &naming{bySource: map[string]*named{}} }

// resolving returns the sources with resolve_names.
func resolving(c *configv1.Config) map[string]bool {
	resolved := map[string]bool{}
	for _, src := range c.GetSources() {
		if src.GetResolveNames() {
			resolved[src.GetName()] = true
		}
	}
	return resolved
}

// configure sets the sources with resolve_names.
func (n *naming) configure(sources map[string]bool) {
	for name := range n.bySource {
		if !sources[name] {
			delete(n.bySource, name)
			n.resolver.Need(name, nil)
		}
	}
	for name := range sources {
		if n.bySource[name] == nil && n.resolver != nil {
			n.bySource[name] = &named{}
		}
	}
}

// translate returns a set with addresses in place of names.
func (n *naming) translate(set *source.Set) *source.Set {
	state := n.bySource[set.Source]
	if state == nil {
		return set
	}
	if set != state.set {
		questions, clusters := names.Questions(set)
		state.clusters = clusters
		n.resolver.Need(set.Source, questions)
	} else if n.resolver.Serial() == state.serial {
		return state.result
	}
	state.set, state.serial = set, n.resolver.Serial()
	state.result = state.rewriter.Apply(set, n.resolver.Answer)
	return state.result
}

// awaits reports whether a source has names that were never resolved so far.
func (n *naming) awaits(name string) bool {
	state := n.bySource[name]
	return state != nil && state.result != nil && state.result.Awaited
}

// share publishes the sources that await their names.
func (n *naming) share() {
	var awaited []string
	for name := range n.bySource {
		if n.awaits(name) {
			awaited = append(awaited, name)
		}
	}
	slices.Sort(awaited)
	n.awaited.Store(&awaited)
}

// Unresolved returns the sources with names that were never resolved so far, without
// waiting.
func (in *Intake) Unresolved() []string {
	if awaited := in.dns.awaited.Load(); awaited != nil {
		return *awaited
	}
	return nil
}

// Resolve makes the Intake resolve the names of some sources from its next Restart on.
func (in *Intake) Resolve(sources map[string]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dns.configure(sources)
}

// renamed applies the present answers of DNS.
func (in *Intake) renamed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.rules != nil {
		in.merge(false)
	}
}
