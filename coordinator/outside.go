package coordinator

import (
	"slices"
	"strings"
	"sync"
	"time"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/coordinator/feed"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/notify"
	"hdsd/ruling"
	"hdsd/source"
)

// outsideNames maps own names of clusters to outside names. An own name is a name within hdsd, for further
// versions of a cluster at the relay. Everybody else uses the outside name. Any goroutine may call of.
type outsideNames struct {
	names   sync.Map // outside names by own name, where the two differ or the own name has the form of a version
	removed []string // own names of clusters that were removed since the last tick
}

// outside returns the outside name of a cluster. It works for a removed cluster too, if its own name has the form of
// a version.
func (n *outsideNames) outside(own string) string {
	if n == nil {
		return own
	}
	if outside, present := n.names.Load(own); present {
		return outside.(string)
	}
	outside, _ := health.SplitVersion(own)
	return outside
}

// version returns the version of a cluster; empty for the first one.
func (n *outsideNames) version(own string) string { return health.VersionOf(own, n.outside(own)) }

// titles returns the names of clusters for people.
func (n *outsideNames) titles(own []string) []string {
	titles := make([]string, len(own))
	for i, name := range own {
		titles[i] = health.TitleOf(name, n.version(name))
	}
	return titles
}

func (n *outsideNames) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.ClustersChanged:
		n.change(e.Removed, e.Changed)
	case machine.ClustersApplied: // those of other replicas, too
		n.change(e.Removed, e.Changed)
	}
}

func (n *outsideNames) change(removed []string, changed []*catalog.Cluster) {
	for _, name := range removed {
		n.remove(name)
	}
	for _, k := range changed {
		n.set(k.Source)
	}
}

// set sets the names of a cluster.
func (n *outsideNames) set(k *source.Cluster) {
	outside := k.Outside()
	if _, version := health.SplitVersion(k.Name); outside != k.Name || version != "" {
		n.names.Store(k.Name, outside)
	} else {
		n.names.Delete(k.Name)
	}
}

// remove marks a removed cluster. Its names stay until forget, for the events about its end.
func (n *outsideNames) remove(own string) {
	if _, present := n.names.Load(own); present {
		n.removed = append(n.removed, own)
	}
}

// forget removes the names of removed clusters, unless they are present again.
func (n *outsideNames) forget(isPresent func(own string) bool) {
	for _, own := range n.removed {
		if !isPresent(own) {
			n.names.Delete(own)
		}
	}
	n.removed = nil
}

// logFields returns the fields of a cluster for a line of the log.
func (n *outsideNames) logFields(own string) feed.ClusterName {
	return feed.ClusterName{Own: own, Outside: n.outside(own)}
}

// rename sets the outside name and the version of the cluster of a condition.
func (n *outsideNames) rename(c *notify.Condition) {
	own, outside := c.Cluster, n.outside(c.Cluster)
	if c.Version = health.VersionOf(own, outside); c.Version != "" {
		c.Cluster = outside
		c.Text = strings.Replace(c.Text, "cluster "+own, "cluster "+health.VersionTitle(outside, c.Version), 1)
	}
}

// overrides converts overrides for clients, and sorts them by scope.
func (n *outsideNames) overrides(list []ruling.Override) []api.Override {
	shown := make([]api.Override, len(list))
	for i := range list {
		shown[i] = *n.override(&list[i])
	}
	slices.SortFunc(shown, func(a, b api.Override) int { return a.Scope.Compare(b.Scope) })
	return shown
}

// override converts an override for clients; nil stays nil.
func (n *outsideNames) override(o *ruling.Override) *api.Override {
	if o == nil {
		return nil
	}
	return &api.Override{
		Scope: o.Scope, Version: n.version(o.Scope.Cluster), Status: o.Status, Reason: o.Reason, Author: o.Author, Since: o.Since, Until: o.Until, Endpoints: o.Endpoints,
	}
}

// target returns the scope of an override as a target of the audit, and the version of its cluster.
func (n *outsideNames) target(scope health.Endpoint) (name, version string) {
	version = n.version(scope.Cluster)
	scope.Cluster = health.ClusterOf(scope.Cluster, version)
	return ruling.TargetOf(scope), version
}
