package store

import (
	"maps"
	"slices"
	"sync"
)

// clusterSet holds the names of all clusters ever known.
type clusterSet struct {
	mu    sync.RWMutex
	names map[string]struct{}
}

func (c *clusterSet) has(name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.names[name]
	return ok
}

// add reports whether name is new.
func (c *clusterSet) add(name string) bool {
	if c.has(name) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[string]struct{}{}
	}
	before := len(c.names)
	c.names[name] = struct{}{}
	return len(c.names) > before
}

// sorted returns the names in order.
func (c *clusterSet) sorted() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.names))
}

// KnownCluster reports whether there ever was a cluster of this name: one that
// RememberClusters was called with or that a transition was appended for.
func (s *Store) KnownCluster(name string) bool { return s.known.has(name) }

// RememberClusters makes clusters known, whether or not they ever get a transition. It
// does not wait for the disk.
func (s *Store) RememberClusters(all []string) {
	fresh := map[string][]byte{}
	for _, name := range all {
		if s.known.add(name) {
			fresh[rowKey(hashOf(name))] = []byte(name)
		}
	}
	if len(fresh) > 0 {
		s.intake.put(clusters, fresh)
	}
}
