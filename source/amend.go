package source

import (
	"cmp"
	"maps"
	"slices"
)

func byName(c *Cluster, name string) int { return cmp.Compare(c.Name, name) }

func find(clusters []*Cluster, name string) *Cluster {
	if at, found := slices.BinarySearchFunc(clusters, name, byName); found {
		return clusters[at]
	}
	return nil
}

// Amend returns clusters with those of with in place of the clusters of the same names;
// nil removes one. Both clusters and the result are sorted by name. It does not change
// clusters.
func Amend(clusters []*Cluster, with map[string]*Cluster) []*Cluster {
	all := make([]*Cluster, 0, len(clusters)+len(with))
	for _, name := range slices.Sorted(maps.Keys(with)) {
		at, found := slices.BinarySearchFunc(clusters, name, byName)
		all = append(all, clusters[:at]...)
		if with[name] != nil {
			all = append(all, with[name])
		}
		if clusters = clusters[at:]; found {
			clusters = clusters[1:]
		}
	}
	return append(all, clusters...)
}

// Changes compares clusters with their successors, both sorted by name. It returns
// which are new or changed, and which are gone.
func Changes(before, after []*Cluster) (changed, removed []*Cluster) {
	for len(before) > 0 || len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		case before[0] == after[0]:
			before, after = before[1:], after[1:]
			continue
		default:
			order = cmp.Compare(before[0].Name, after[0].Name)
		}
		if order < 0 {
			removed = append(removed, before[0])
		} else {
			changed = append(changed, after[0])
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
	return changed, removed
}
