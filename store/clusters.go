package store

import (
	"maps"
	"slices"
	"sync"

	"hdsd/health"
)

// clusterSet holds the names of all clusters ever known.
type clusterSet struct {
	mu       sync.RWMutex
	names    map[string]struct{}
	versions map[string][]string // by cluster name: the names that look like its versions
}

func (c *clusterSet) contains(name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.names[name]
	return ok
}

// add reports whether name is new.
func (c *clusterSet) add(name string) bool {
	if c.contains(name) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[string]struct{}{}
	}
	before := len(c.names)
	c.names[name] = struct{}{}
	if cluster, version := health.SplitVersion(name); version != "" && len(c.names) > before {
		if c.versions == nil {
			c.versions = map[string][]string{}
		}
		c.versions[cluster] = append(c.versions[cluster], name)
	}
	return len(c.names) > before
}

// sorted returns the names in order.
func (c *clusterSet) sorted() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.names))
}

// KnownCluster reports whether rememberClusters or a transition ever named this cluster.
func (s *Store) KnownCluster(name string) bool { return s.clusters.contains(name) }

// KnownVersions returns the known cluster names made of name and a version suffix of hdsd,
// sorted.
func (s *Store) KnownVersions(name string) []string {
	s.clusters.mu.RLock()
	defer s.clusters.mu.RUnlock()
	return slices.Sorted(slices.Values(s.clusters.versions[name]))
}

// rememberClusters makes clusters known, even without transitions. It does not wait for the
// disk.
func (s *Store) rememberClusters(names []string) { s.rememberIn(s.intake, names) }

// rememberClustersOf makes the clusters of transitions known.
func (s *Store) rememberClustersOf(in *intake, batch []health.Transition) {
	for i := range batch {
		if i == 0 || batch[i].Endpoint.Cluster != batch[i-1].Endpoint.Cluster {
			s.rememberIn(in, []string{batch[i].Endpoint.Cluster})
		}
	}
}

// rememberIn makes clusters known, and adds rows of new ones to an intake.
func (s *Store) rememberIn(in *intake, names []string) {
	fresh := map[string][]byte{}
	for _, name := range names {
		if s.clusters.add(name) {
			fresh[rowKey(hashOf(name))] = []byte(name)
		}
	}
	if len(fresh) > 0 {
		in.put(clusters, fresh)
	}
}
