package access

import (
	"slices"
	"strings"

	"hdsd/source"
)

// Clusters is which clusters a caller may see, or change.
type Clusters struct {
	all   bool
	globs []string // sorted, each once

	outside func(own string) string // see WithVersions
}

// AllClusters is every cluster.
func AllClusters() Clusters { return Clusters{all: true} }

// All reports whether these are all clusters, whatever their names.
func (c Clusters) All() bool { return c.all }

// Has reports whether a cluster is one of these.
func (c Clusters) Has(name string) bool {
	if c.all || c.matches(name) {
		return true
	}
	if c.outside == nil {
		return false
	}
	outside := c.outside(name)
	return outside != name && c.matches(outside)
}

func (c Clusters) matches(name string) bool {
	return slices.ContainsFunc(c.globs, func(glob string) bool { return source.Match(glob, name) })
}

// WithVersions returns these clusters with all versions of each. hdsd has its own name for a further
// version; outside returns the name that everybody else has for it.
func (c Clusters) WithVersions(outside func(own string) string) Clusters {
	c.outside = outside
	return c
}

// Globs lists the globs of the names, sorted; "*" alone is all clusters.
func (c Clusters) Globs() []string {
	if c.all {
		return []string{"*"}
	}
	return c.globs
}

// Equal reports whether two callers may see the same clusters.
func (c Clusters) Equal(other Clusters) bool {
	return c.all == other.all && slices.Equal(c.globs, other.globs)
}

// String lists the globs.
func (c Clusters) String() string {
	return strings.Join(c.Globs(), ", ")
}

// Clusters gives the clusters that the caller's grants for a call are for.
func (a *Authority) Clusters(need Need) Clusters {
	var some Clusters
	for _, m := range a.grants {
		switch {
		case !m.roles.has(need.Role) && !(need.Operators && m.roles.has(Operator)):
		case m.glob == "":
			return AllClusters()
		default:
			some.globs = append(some.globs, m.glob)
		}
	}
	if a.all || need.Open {
		return AllClusters()
	}
	slices.Sort(some.globs)
	some.globs = slices.Compact(some.globs)
	return some
}
