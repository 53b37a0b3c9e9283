package ruling

import (
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
)

// These are the reasons why an endpoint is gone. The history keeps these texts, and Restore
// compares them.
const (
	InNoSource = "in no source any more"
	notChecked = "not checked any more"
	movedTo    = "moved to locality "
	movedFrom  = "moved from locality "

	// The aggregator gives it for an endpoint that never had a verdict. It is in the transition at the
	// end of an override.
	noVerdict = ": no verdict yet: "
)

// past remembers the health of absent endpoints: those that no source has had since the start,
// and those that left their source while hdsd settled.
type past struct {
	last  map[health.Hash]log.Health     // their health
	voted map[health.Hash]health.Verdict // the verdict of the votes, if an override decided

	byCluster map[string][]health.Hash // those in last, and some earlier ones; made when needed
}

// hashes returns the hashes of the endpoints of a cluster in last, and of some earlier ones.
func (p *past) hashes(cluster string) []health.Hash {
	if p.byCluster == nil {
		p.byCluster = map[string][]health.Hash{}
		for hash, held := range p.last {
			p.byCluster[held.Endpoint.Cluster] = append(p.byCluster[held.Endpoint.Cluster], hash)
		}
	}
	return p.byCluster[cluster]
}

// move remembers an endpoint under another key.
func (p *past) move(from, to health.Hash, key *health.Endpoint) {
	last := p.last[from]
	last.Endpoint = *key
	delete(p.last, from)
	p.last[to] = last
	if votes, overridden := p.voted[from]; overridden {
		delete(p.voted, from)
		p.voted[to] = votes
	}
}

// restore takes the stored health, except for endpoints that were gone.
func (p *past) restore(last map[health.Hash]log.Health, voted map[health.Hash]health.Verdict) {
	maps.DeleteFunc(last, func(_ health.Hash, held log.Health) bool { return IsGone(held.Status, held.Reason) })
	p.last, p.voted = last, voted
	if p.voted == nil {
		p.voted = map[health.Hash]health.Verdict{}
	}
}

// restoreRow returns and forgets the state of an endpoint that is back: its health, the verdict
// of the votes (if known), and whether an override decided.
func (p *past) restoreRow(hash health.Hash) (held, votes health.Verdict, known, overridden bool) {
	last, had := p.last[hash]
	delete(p.last, hash)
	held = health.Verdict{Status: last.Status, Since: last.Since}
	if voted, ok := p.voted[hash]; ok {
		delete(p.voted, hash)
		return held, voted, voted.Status != health.Unknown || !voted.Since.IsZero(), true
	}
	if last.Status == health.Draining { // only an override does that
		return held, health.Verdict{}, false, true
	}
	return held, held, had && hasVerdict(&last), false
}

// hasVerdict reports whether the recorded health is or was a verdict of the votes.
func hasVerdict(last *log.Health) bool {
	return last.Status != health.Unknown || !strings.Contains(last.Reason, noVerdict)
}

// keep remembers an endpoint that leaves its source.
func (p *past) keep(r *row, votesSince time.Time) { p.keepAs(r, votesSince, r.hash, r.key()) }

// keepAs remembers the health of an endpoint under another key.
func (p *past) keepAs(r *row, votesSince time.Time, hash health.Hash, key health.Endpoint) {
	held := log.Health{Status: r.health(), Since: votesSince}
	if r.overlay != nil {
		held.Since = r.overlay.start
	}
	if r.override() != nil {
		p.voted[hash] = health.Verdict{Status: r.status, Since: votesSince}
	}
	if r.judged || r.override() != nil {
		held.Endpoint = key
		p.remember(hash, held)
	}
}

func (p *past) remember(hash health.Hash, held log.Health) {
	if p.last == nil {
		p.last = map[health.Hash]log.Health{}
	}
	p.last[hash] = held
	if p.byCluster != nil {
		p.byCluster[held.Endpoint.Cluster] = append(p.byCluster[held.Endpoint.Cluster], hash)
	}
}

// forget returns and forgets the health of an endpoint.
func (p *past) forget(hash health.Hash) (last log.Health, known bool) {
	last, known = p.last[hash]
	delete(p.last, hash)
	if known {
		delete(p.voted, hash)
	}
	return last, known
}

// conclude forgets all endpoints but those of hidden clusters. It returns those with health,
// and the hashes of those whose stored votes are to be forgotten, both in order.
func (p *past) conclude(hidden func(cluster string) bool) (lost []log.Health, unvoted []health.Hash) {
	for hash, last := range p.last {
		if hidden(last.Endpoint.Cluster) {
			continue
		}
		delete(p.last, hash)
		if last.Status != health.Unknown {
			lost = append(lost, last)
		}
	}
	slices.SortFunc(lost, func(a, b log.Health) int { return a.Endpoint.Compare(b.Endpoint) })
	if len(p.last) == 0 {
		p.last, p.byCluster = nil, nil // they may have been large
	}
	for hash := range p.voted {
		if _, kept := p.last[hash]; !kept {
			delete(p.voted, hash)
			unvoted = append(unvoted, hash)
		}
	}
	slices.Sort(unvoted)
	return lost, unvoted
}

// goneTransition returns the transition of a removed endpoint. The cluster is the one of that
// time, or nil.
func goneTransition(k *catalog.Cluster, key health.Endpoint, status health.Status, now time.Time) health.Transition {
	reason := InNoSource
	if k.Find(&key) != nil {
		reason = notChecked
	}
	return health.Transition{Time: now, Endpoint: key, From: status, To: health.Unknown, Reason: reason}
}

// IsGone reports whether recorded health, with its reason, belongs to a removed endpoint.
func IsGone(status health.Status, reason string) bool {
	return status == health.Unknown && (reason == InNoSource || reason == notChecked || strings.HasPrefix(reason, movedTo))
}

// hidesEndpoints reports whether a mistake in the source hides the endpoints of a cluster.
func hidesEndpoints(k *catalog.Cluster) bool {
	return k != nil && k.Source.Assignment == nil && k.Source.Rejected != ""
}
