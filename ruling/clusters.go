package ruling

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"hdsd/catalog"
	"hdsd/health"
)

// clusters holds the present clusters.
type clusters struct {
	byName    map[string]*catalog.Cluster
	names     []string                      // sorted
	byService map[string][]*catalog.Cluster // by the name of the assignment, which clusters may share; sorted by name
	versions  map[string][]*catalog.Cluster // by the name outside, for clusters with another name in hdsd
	shadowed  int                           // clusters in shadow mode that have checked endpoints

	quarantined int // clusters and endpoints
}

func (c *clusters) add(k *catalog.Cluster) {
	name, service := k.Source.Name, k.Source.ServiceName
	c.byName[name] = k
	i, _ := c.find(service, name)
	c.byService[service] = slices.Insert(c.byService[service], i, k)
	if outside := k.Source.Outside(); outside != name {
		c.versions[outside] = append(c.versions[outside], k)
	}
	if k.Shadow && k.IsChecked() {
		c.shadowed++
	}
	c.quarantined += len(k.Exclusions())
}

func (c *clusters) remove(k *catalog.Cluster) {
	name, service := k.Source.Name, k.Source.ServiceName
	delete(c.byName, name)
	i, _ := c.find(service, name)
	if c.byService[service] = slices.Delete(c.byService[service], i, i+1); len(c.byService[service]) == 0 {
		delete(c.byService, service)
	}
	if outside := k.Source.Outside(); outside != name {
		c.versions[outside] = slices.DeleteFunc(c.versions[outside], func(other *catalog.Cluster) bool { return other == k })
		if len(c.versions[outside]) == 0 {
			delete(c.versions, outside)
		}
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
	deleted := make(map[string]bool, len(removed))
	for _, name := range removed {
		deleted[name] = true
	}
	c.names = append(slices.DeleteFunc(c.names, func(name string) bool { return deleted[name] }), added...)
	slices.Sort(c.names)
}

// find returns the index of a cluster, or its place, among the clusters that share an
// assignment.
func (c *clusters) find(service, name string) (i int, found bool) {
	return slices.BinarySearchFunc(c.byService[service], name, func(k *catalog.Cluster, name string) int {
		return strings.Compare(k.Source.Name, name)
	})
}

// within returns the clusters that may have endpoints within a scope.
func (c *clusters) within(scope *health.Endpoint) iter.Seq[*catalog.Cluster] {
	if scope.Cluster == "" {
		return maps.Values(c.byName)
	}
	return func(yield func(*catalog.Cluster) bool) {
		if k := c.byName[scope.Cluster]; k != nil && !yield(k) {
			return
		}
		for _, k := range c.versions[scope.Cluster] {
			if !yield(k) {
				return
			}
		}
	}
}

// has reports whether a cluster has this name: hdsd's own, or the one outside.
func (c *clusters) has(name string) bool { return c.byName[name] != nil || len(c.versions[name]) > 0 }

// outside returns a scope with the outside name of its cluster. For an absent cluster, that
// requires a name that looks like hdsd's own for a version.
func (c *clusters) outside(scope health.Endpoint) *health.Endpoint {
	if k := c.byName[scope.Cluster]; k != nil {
		scope.Cluster = k.Source.Outside()
	} else {
		scope.Cluster, _ = health.SplitVersion(scope.Cluster)
	}
	return &scope
}

// siblings returns the other versions of a cluster.
func (c *clusters) siblings(k *catalog.Cluster) iter.Seq[*catalog.Cluster] {
	outside := k.Source.Outside()
	return func(yield func(*catalog.Cluster) bool) {
		if first := c.byName[outside]; first != nil && first != k && first.Source.Outside() == outside && !yield(first) {
			return
		}
		for _, other := range c.versions[outside] {
			if other != k && !yield(other) {
				return
			}
		}
	}
}
