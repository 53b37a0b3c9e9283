package source

import (
	"cmp"
	"maps"
	"slices"
)

func byName(c *Cluster, name string) int { return cmp.Compare(c.Name, name) }

func find(clusters []*Cluster, name string) *Cluster {
	if index, found := slices.BinarySearchFunc(clusters, name, byName); found {
		return clusters[index]
	}
	return nil
}

// Amend returns clusters with replacements in place of the clusters of the same names; nil
// removes one. Both clusters and the result are sorted by name. It does not change clusters.
func Amend(clusters []*Cluster, replacements map[string]*Cluster) []*Cluster {
	amended := make([]*Cluster, 0, len(clusters)+len(replacements))
	for _, name := range slices.Sorted(maps.Keys(replacements)) {
		index, found := slices.BinarySearchFunc(clusters, name, byName)
		amended = append(amended, clusters[:index]...)
		if replacements[name] != nil {
			amended = append(amended, replacements[name])
		}
		if clusters = clusters[index:]; found {
			clusters = clusters[1:]
		}
	}
	return append(amended, clusters...)
}

// Changes compares clusters with their successors, both sorted by name. It returns new or
// changed ones, and the names of removed ones.
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
