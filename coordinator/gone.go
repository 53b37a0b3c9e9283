package coordinator

import (
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/store"
)

// Why an endpoint that had health has none any more.
const (
	inNoSource   = "in no source any more"
	uncheckedNow = "not checked any more"
)

// drop lets go of an endpoint that is neither checked nor held any more.
func (c *core) drop(id health.EndpointID, e *edit) {
	row := &c.table.rows[id]
	switch from := row.health(); {
	case c.fleet.Settling():
		c.suspend(id)
	case from != health.Unknown:
		e.gone = append(e.gone, c.parting(row.key(), from, e.now))
	}
	if !c.fleet.Settling() && row.overridden() != nil {
		e.unvoted[row.hash] = nil
	}
	c.judge.Remove(id)
	c.table.release(id, e.now)
}

// suspend keeps what is known of an endpoint that goes while hdsd settles as it
// was kept over the restart: it may come back.
func (c *core) suspend(id health.EndpointID) {
	row, votes := &c.table.rows[id], c.judge.Verdict(id)
	last := health.Verdict{Status: row.health(), Since: votes.Since}
	if row.ruling != nil {
		last.Since = row.ruling.since
	}
	if row.overridden() != nil {
		c.voted[row.hash] = health.Verdict{Status: row.status, Since: votes.Since}
	}
	if row.judged || row.overridden() != nil {
		c.last[row.hash] = store.Held{Endpoint: row.key(), Verdict: last}
	}
}

// part records that endpoints are gone which had health when hdsd last
// stopped, or while it settled. It is not done before each source has answered,
// however long that takes, and hdsd has settled. What a mistake hides is waited
// for.
func (c *core) part(now time.Time) {
	if c.fleet.Settling() || c.unread {
		return
	}
	c.forgetTrials()
	var gone []health.Transition
	for hash, last := range c.last {
		if hides(c.clusters[last.Endpoint.Cluster]) {
			continue
		}
		delete(c.last, hash)
		if last.Status != health.Unknown {
			gone = append(gone, c.parting(last.Endpoint, last.Status, now))
		}
	}
	slices.SortFunc(gone, func(a, b health.Transition) int { return a.Endpoint.Compare(b.Endpoint) })
	if len(c.last) == 0 {
		c.last = nil // it may have been large
	}
	c.enact(nil, gone)
	c.forgetVoted()
}

// parting is how the history says that an endpoint has no health any more.
func (c *core) parting(key health.Endpoint, from health.Status, now time.Time) health.Transition {
	return partingOf(c.clusters[key.Cluster], key, from, now)
}

// partingOf is parting, by what there was of the endpoint's cluster then, if
// anything.
func partingOf(k *catalog.Cluster, key health.Endpoint, from health.Status, now time.Time) health.Transition {
	reason := inNoSource
	if k.Find(&key) != nil {
		reason = uncheckedNow
	}
	return health.Transition{Time: now, Endpoint: key, From: from, To: health.Unknown, Reason: reason}
}

// renounce lets go of what was known before the start of endpoints that a cluster
// has now, where its sources could have said so when hdsd had settled, and did not:
// they were gone, and begin anew.
func (c *core) renounce(before, after *catalog.Cluster, e *edit) {
	from := after.Source
	if c.fleet.Settling() || len(c.last) == 0 || hides(before) || !c.heard[from.Source] || !c.heard[from.EndpointSource()] {
		return
	}
	for _, hash := range after.Hashes {
		c.disown(hash, before, e)
	}
	for i := range after.Excluded {
		c.disown(after.Excluded[i].Hash, before, e)
	}
}

// disown records that an endpoint was gone, if anything is known of it.
func (c *core) disown(hash health.Hash, before *catalog.Cluster, e *edit) {
	last, known := c.last[hash]
	if !known {
		return
	}
	delete(c.last, hash)
	delete(c.voted, hash)
	e.unvoted[hash] = nil
	if last.Status != health.Unknown {
		e.gone = append(e.gone, partingOf(before, last.Endpoint, last.Status, e.now))
	}
}

// hides tells whether a mistake keeps hdsd from knowing a cluster's endpoints.
func hides(k *catalog.Cluster) bool {
	return k != nil && k.Source.Assignment == nil && k.Source.Quarantine != ""
}

// parted tells whether the last that is known of an endpoint is that it was
// gone. It begins anew when it is back.
func parted(last *health.Verdict) bool {
	return last.Status == health.Unknown && (last.Reason == inNoSource || last.Reason == uncheckedNow)
}
