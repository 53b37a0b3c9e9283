package coordinator

import (
	"slices"
	"time"

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
	case c.settling:
		c.suspend(id)
	case from != health.Unknown:
		e.gone = append(e.gone, c.parting(row.key(), from, e.now))
	}
	if !c.settling && row.overridden() != nil {
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
	delete(c.last, row.hash)
	if row.overridden() != nil {
		c.voted[row.hash] = health.Verdict{Status: row.status, Since: votes.Since}
	}
	if row.judged || row.overridden() != nil {
		c.last[row.hash] = store.Held{Endpoint: row.key(), Verdict: last}
	}
}

// part records that endpoints are gone which had health when hdsd last
// stopped, or while it settled. It is not done before each source was read,
// however long that takes, and hdsd has settled. What a cluster had whose
// endpoints are hidden is waited for.
func (c *core) part(now time.Time) {
	if c.settling || c.unread {
		return
	}
	c.forgetTrials()
	var gone []health.Transition
	for hash, last := range c.last {
		_, stays := c.table.ids[hash]
		if !stays && c.hidden(last.Endpoint.Cluster) {
			continue
		}
		delete(c.last, hash)
		if !stays && last.Status != health.Unknown {
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
	reason := inNoSource
	if _, e := c.entryOf(&key); e != nil {
		reason = uncheckedNow
	}
	return health.Transition{Time: now, Endpoint: key, From: from, To: health.Unknown, Reason: reason}
}

// hidden tells whether something keeps hdsd from knowing a cluster's endpoints:
// a mistake, or that its source has not said yet which there are.
func (c *core) hidden(name string) bool {
	k := c.clusters[name]
	return k != nil && k.source.Assignment == nil && (k.source.Quarantine != "" || k.source.EDS())
}

// parted tells whether the last that is known of an endpoint is that it was
// gone. It begins anew when it is back.
func parted(last *health.Verdict) bool {
	return last.Status == health.Unknown && (last.Reason == inNoSource || last.Reason == uncheckedNow)
}
