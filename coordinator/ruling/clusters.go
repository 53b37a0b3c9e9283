package ruling

import (
	"iter"
	"maps"
	"slices"

	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// clusters holds the present clusters.
type clusters struct {
	byName    map[string]*catalog.Cluster
	names     []string                               // sorted
	byService map[string]map[string]*catalog.Cluster // by the name of the assignment, which clusters may share
	shadowed  int                                    // clusters in shadow mode that have checked endpoints

	quarantined int // clusters and endpoints
}

func (c *clusters) add(k *catalog.Cluster) {
	name, service := k.Source.Name, k.Source.ServiceName
	c.byName[name] = k
	if c.byService[service] == nil {
		c.byService[service] = map[string]*catalog.Cluster{}
	}
	c.byService[service][name] = k
	if k.Shadow && k.IsChecked() {
		c.shadowed++
	}
	c.quarantined += len(k.Exclusions())
}

func (c *clusters) remove(k *catalog.Cluster) {
	name, service := k.Source.Name, k.Source.ServiceName
	delete(c.byName, name)
	delete(c.byService[service], name)
	if len(c.byService[service]) == 0 {
		delete(c.byService, service)
	}
	if k.Shadow && k.IsChecked() {
		c.shadowed--
	}
	c.quarantined -= len(k.Exclusions())
}

// rename updates the list of names.
func (c *clusters) rename(added, removed []string) {
	if len(added)+len(removed) == 0 {
		return
	}
	gone := make(map[string]bool, len(removed))
	for _, name := range removed {
		gone[name] = true
	}
	c.names = append(slices.DeleteFunc(c.names, func(name string) bool { return gone[name] }), added...)
	slices.Sort(c.names)
}

// sharing returns the clusters that share an assignment, sorted by name.
func (c *clusters) sharing(service string) iter.Seq[*catalog.Cluster] {
	all := c.byService[service]
	if len(all) == 1 {
		return maps.Values(all)
	}
	return func(yield func(*catalog.Cluster) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[name]) {
				return
			}
		}
	}
}

// within returns the clusters that may have endpoints within a scope.
func (c *clusters) within(scope *health.Endpoint) iter.Seq[*catalog.Cluster] {
	if scope.Cluster == "" {
		return maps.Values(c.byName)
	}
	return func(yield func(*catalog.Cluster) bool) {
		if k := c.byName[scope.Cluster]; k != nil {
			yield(k)
		}
	}
}
