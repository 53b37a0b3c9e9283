package coordinator

import (
	"slices"
	"strings"
	"sync"
	"time"

	"hdsd/api"
	"hdsd/coordinator/feed"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/notify"
	"hdsd/ruling"
	"hdsd/source"
)

// outsideNames says what everybody else calls the clusters that hdsd has names of its own for: the
// relay's further versions of a cluster. Any goroutine may call of.
type outsideNames struct {
	all  sync.Map // by hdsd's own name, if that differs, or looks as if it did
	gone []string // removed since the last tick
}

// of returns the name that everybody else has for a cluster; for one that has gone, if its name looks
// like hdsd's own for a version.
func (n *outsideNames) of(own string) string {
	if n == nil {
		return own
	}
	if outside, present := n.all.Load(own); present {
		return outside.(string)
	}
	outside, _ := health.SplitVersion(own)
	return outside
}

// version returns which version of a cluster hdsd has or had a name for.
func (n *outsideNames) version(own string) string { return health.VersionOf(own, n.of(own)) }

// titles returns what people are shown for clusters.
func (n *outsideNames) titles(own []string) []string {
	all := make([]string, len(own))
	for i, name := range own {
		all[i] = health.TitleOf(name, n.version(name))
	}
	return all
}

func (n *outsideNames) observe(_ time.Time, e machine.Effect) {
	if e, ok := e.(machine.ClustersChanged); ok {
		for _, name := range e.Removed {
			n.remove(name)
		}
		for _, k := range e.Changed {
			n.set(k.Source)
		}
	}
}

// set takes note of a cluster.
func (n *outsideNames) set(k *source.Cluster) {
	outside := k.Outside()
	if _, version := health.SplitVersion(k.Name); outside != k.Name || version != "" {
		n.all.Store(k.Name, outside)
	} else {
		n.all.Delete(k.Name)
	}
}

// remove takes note that a cluster has gone. Its name stays until forget, for what is said of its end.
func (n *outsideNames) remove(own string) {
	if _, present := n.all.Load(own); present {
		n.gone = append(n.gone, own)
	}
}

// forget forgets clusters that have gone, unless they are back, once their end was told.
func (n *outsideNames) forget(isPresent func(own string) bool) {
	for _, own := range n.gone {
		if !isPresent(own) {
			n.all.Delete(own)
		}
	}
	n.gone = nil
}

// logged returns the name of a cluster as a line of the log has it.
func (n *outsideNames) logged(own string) feed.ClusterName {
	return feed.ClusterName{Own: own, Outside: n.of(own)}
}

// rename gives a condition the name of its cluster that its readers know, and the version.
func (n *outsideNames) rename(c *notify.Condition) {
	own, outside := c.Cluster, n.of(c.Cluster)
	if c.Version = health.VersionOf(own, outside); c.Version != "" {
		c.Cluster = outside
		c.Text = strings.Replace(c.Text, "cluster "+own, "cluster "+health.VersionTitle(outside, c.Version), 1)
	}
}

// overrides converts overrides for clients, and sorts them by scope.
func (n *outsideNames) overrides(all []ruling.Override) []api.Override {
	shown := make([]api.Override, len(all))
	for i := range all {
		shown[i] = *n.override(&all[i])
	}
	slices.SortFunc(shown, func(a, b api.Override) int { return a.Scope.Compare(b.Scope) })
	return shown
}

// override converts an override for clients; nil is nil.
func (n *outsideNames) override(o *ruling.Override) *api.Override {
	if o == nil {
		return nil
	}
	return &api.Override{
		Scope: o.Scope, Version: n.version(o.Scope.Cluster), Status: o.Status, Reason: o.Reason, Author: o.Author, Since: o.Since, Until: o.Until, Endpoints: o.Endpoints,
	}
}

// target names the scope of an override as the audit has it, and which version of its cluster that is of.
func (n *outsideNames) target(scope health.Endpoint) (name, version string) {
	version = n.version(scope.Cluster)
	scope.Cluster = health.ClusterOf(scope.Cluster, version)
	return ruling.TargetOf(scope), version
}
