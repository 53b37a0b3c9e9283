package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/store"
)

// Why an endpoint that had health has none any more.
const (
	InNoSource = "in no source any more"
	notChecked = "not checked any more"
)

// past is what was known before the start of endpoints that no source has yet, or that
// went from their source while hdsd settled.
type past struct {
	last  map[health.Hash]store.Held     // what was held to be true
	voted map[health.Hash]health.Verdict // of those under overrides, what the votes came to
}

// restore takes over what is stored. What was gone begins anew when it is back.
func (p *past) restore(last map[health.Hash]store.Held, voted map[health.Hash]health.Verdict) {
	maps.DeleteFunc(last, func(_ health.Hash, held store.Held) bool { return isGone(&held.Verdict) })
	p.last, p.voted = last, voted
	if p.voted == nil {
		p.voted = map[health.Hash]health.Verdict{}
	}
}

// take removes what is known of an endpoint that is back: what was held to be true,
// what the votes had come to, if that is known, and whether an override decided.
func (p *past) take(hash health.Hash) (held, votes health.Verdict, known, overridden bool) {
	last, had := p.last[hash]
	delete(p.last, hash)
	if voted, ok := p.voted[hash]; ok {
		delete(p.voted, hash)
		return last.Verdict, voted, voted.Status != health.Unknown || !voted.Since.IsZero(), true
	}
	if last.Status == health.Draining { // which no votes come to
		return last.Verdict, health.Verdict{}, false, true
	}
	return last.Verdict, last.Verdict, had, false
}

// keep takes up an endpoint that goes from its source while hdsd settles: it may come
// back.
func (p *past) keep(r *row, votesSince time.Time) {
	held := health.Verdict{Status: r.health(), Since: votesSince}
	if r.overlay != nil {
		held.Since = r.overlay.since
	}
	if r.override() != nil {
		p.voted[r.hash] = health.Verdict{Status: r.status, Since: votesSince}
	}
	if r.judged || r.override() != nil {
		p.last[r.hash] = store.Held{Endpoint: r.key(), Verdict: held}
	}
}

// forget drops what is known of an endpoint, and gives its health.
func (p *past) forget(hash health.Hash) (last store.Held, known bool) {
	last, known = p.last[hash]
	delete(p.last, hash)
	if known {
		delete(p.voted, hash)
	}
	return last, known
}

// conclude drops the endpoints that no mistake hides: they are gone. It gives those that
// had health, in order, and the hashes of those of which the votes are forgotten.
func (p *past) conclude(hidden func(cluster string) bool) (gone []store.Held, unvoted []health.Hash) {
	for hash, last := range p.last {
		if hidden(last.Endpoint.Cluster) {
			continue
		}
		delete(p.last, hash)
		if last.Status != health.Unknown {
			gone = append(gone, last)
		}
	}
	slices.SortFunc(gone, func(a, b store.Held) int { return a.Endpoint.Compare(b.Endpoint) })
	if len(p.last) == 0 {
		p.last = nil // it may have been large
	}
	for hash := range p.voted {
		if _, waits := p.last[hash]; !waits {
			delete(p.voted, hash)
			unvoted = append(unvoted, hash)
		}
	}
	return gone, unvoted
}

// goneTransition records that an endpoint has no health any more, given its cluster as
// it was then, or nil.
func goneTransition(k *catalog.Cluster, key health.Endpoint, from health.Status, now time.Time) health.Transition {
	reason := InNoSource
	if k.Find(&key) != nil {
		reason = notChecked
	}
	return health.Transition{Time: now, Endpoint: key, From: from, To: health.Unknown, Reason: reason}
}

// isGone tells whether the last verdict of an endpoint says that it was gone.
func isGone(last *health.Verdict) bool {
	return last.Status == health.Unknown && (last.Reason == InNoSource || last.Reason == notChecked)
}

// hidesEndpoints tells whether a mistake keeps hdsd from knowing a cluster's endpoints.
func hidesEndpoints(k *catalog.Cluster) bool {
	return k != nil && k.Source.Assignment == nil && k.Source.Quarantine != ""
}
