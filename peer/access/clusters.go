package access

import (
	"slices"
	"strings"

	"hdsd/source"
)

// Clusters is the set of clusters that a caller may see, or change.
type Clusters struct {
	unlimited bool
	globs     []string // sorted, each once

	outside func(name string) string // see WithVersions
}

// AllClusters is every cluster.
func AllClusters() Clusters { return Clusters{unlimited: true} }

// ClustersOf is the clusters whose names match some globs.
func ClustersOf(globs ...string) Clusters {
	return Clusters{globs: slices.Compact(slices.Sorted(slices.Values(globs)))}
}

// All reports whether these are all clusters, whatever their names.
func (c Clusters) All() bool { return c.unlimited }

// Has reports whether a cluster is one of these.
func (c Clusters) Has(name string) bool {
	if c.unlimited || c.matches(name) {
		return true
	}
	outside := c.Outside(name)
	return outside != name && c.matches(outside)
}

// Outside returns the name of a cluster outside hdsd.
func (c Clusters) Outside(name string) string {
	if c.outside == nil {
		return name
	}
	return c.outside(name)
}

func (c Clusters) matches(name string) bool {
	return slices.ContainsFunc(c.globs, func(glob string) bool { return source.Match(glob, name) })
}

// WithVersions returns these clusters with all versions of each. hdsd has its own name for a
// further version; outside returns its name outside hdsd.
func (c Clusters) WithVersions(outside func(name string) string) Clusters {
	c.outside = outside
	return c
}

// Globs lists the globs of the names, sorted; "*" alone is all clusters.
func (c Clusters) Globs() []string {
	if c.unlimited {
		return []string{"*"}
	}
	return c.globs
}

// Equal reports whether two callers may see the same clusters.
func (c Clusters) Equal(other Clusters) bool {
	return c.unlimited == other.unlimited && slices.Equal(c.globs, other.globs)
}

// String lists the globs.
func (c Clusters) String() string {
	return strings.Join(c.Globs(), ", ")
}

// Clusters returns the clusters of the caller's grants for a call.
func (a *Authority) Clusters(need Need) Clusters {
	var clusters Clusters
	for _, m := range a.grants {
		switch {
		case !m.roles.include(need.Role) && !(need.Operators && m.roles.include(Operator)):
		case m.glob == "":
			return AllClusters()
		default:
			clusters.globs = append(clusters.globs, m.glob)
		}
	}
	if a.unrestricted || need.Open {
		return AllClusters()
	}
	slices.Sort(clusters.globs)
	clusters.globs = slices.Compact(clusters.globs)
	return clusters
}
