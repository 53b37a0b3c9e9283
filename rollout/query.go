package rollout

import (
	"fmt"
	"slices"
	"time"

	"hdsd/catalog"
)

// Trials counts the trials in progress.
func (r *Rollout) Trials() int { return r.ledger.InProgress() }

// BlockedClusters counts the clusters whose present version no checker may try.
func (r *Rollout) BlockedClusters() int { return r.ledger.BlockedClusters() }

// Blocked reports whether no checker may try the present version of a cluster.
func (r *Rollout) Blocked(cluster string) bool { return r.ledger.Blocked(cluster) }

// Behind reports whether a checker lacks part of its work until others have tried it.
// Blocked clusters do not count.
func (r *Rollout) Behind(checker string) bool {
	c := r.recipients[checker]
	return c != nil && slices.ContainsFunc(c.withheld, func(name string) bool { return !r.ledger.Blocked(name) })
}

// Reason returns the reason why some checkers of a cluster do not get its present version. It
// is empty if all do.
func (r *Rollout) Reason(cluster string) string {
	s := r.ledger.Standing(cluster)
	moment := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case len(s.Losses) > 1:
		return fmt.Sprintf("blocked: %s (at %s) and %s (at %s) were lost while they tried this version, so no other checker gets it; "+
			"the version before stays in use; change the cluster, or remove it and add it again; "+
			"otherwise one established checker tries it after %s",
			s.Losses[0].Checker, moment(s.Losses[0].Time), s.Losses[1].Checker, moment(s.Losses[1].Time), moment(s.Retry))
	case s.With != "":
		return fmt.Sprintf("checks like those of this cluster go to one checker first, now to %s with the cluster %s", s.Canary, r.histories[s.With].present.Title())
	case s.Canary != "":
		return fmt.Sprintf("a new or changed cluster goes to one checker first, now to %s", s.Canary)
	case len(s.Losses) > 0:
		return fmt.Sprintf("%s was lost (at %s) while it tried this version; it is tried once more, alone, when no checker has come or gone for a while",
			s.Losses[0].Checker, moment(s.Losses[0].Time))
	case s.RefusedBy != "":
		return fmt.Sprintf("not accepted by %s (look at its hds_delegate.errors); it is tried elsewhere, alone, from %s on", s.RefusedBy, moment(s.Retry))
	}
	return ""
}

// UntriedReason returns the reason why no checker may get an endpoint of a cluster yet. It is
// empty if some may.
func (r *Rollout) UntriedReason(k *catalog.Cluster, index int) string {
	for id, c := range r.recipients {
		if r.lookup.Connected(id) && r.ledger.ProvenShape(c.build, k.Shapes[index]) {
			return ""
		}
	}
	if reason := r.Reason(k.Source.Name); reason != "" {
		return "not checked yet: " + reason
	}
	return "not checked yet: a new or changed cluster goes to one checker first"
}
