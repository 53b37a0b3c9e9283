package ruling

import (
	"maps"
	"strings"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/store"
)

// moves finds the endpoints of a cluster of which only the locality changes: one leaves,
// and one with the same address comes. Where several do, nobody can tell which is which.
type moves struct {
	leaving map[string]health.Hash // by address; several: 0
	staying map[string]health.Hash // by address; several: 0
	coming  map[string]int         // by address
}

// newMoves compares two versions of a cluster, the first of which may be nil, and those of its
// endpoints that are remembered and certainly gone. first is the first new endpoint of those
// that are added.
func (e *edit) newMoves(before, after *catalog.Cluster, first health.Hash) *moves {
	m := &moves{leaving: map[string]health.Hash{}, staying: map[string]health.Hash{}, coming: map[string]int{}}
	seen, listed := map[health.Hash]bool{}, make(map[health.Hash]bool, len(after.Endpoints))
	for i := range after.Endpoints {
		listed[after.Endpoints[i].Hash()] = true
	}
	leave := func(hash health.Hash, address string) {
		if seen[hash] {
			return
		}
		seen[hash] = true
		to := m.leaving
		if listed[hash] {
			to = m.staying
		}
		if _, several := to[address]; several {
			hash = 0
		}
		to[address] = hash
	}
	if before != nil {
		for i := range before.Endpoints {
			leave(before.Endpoints[i].Hash(), before.Endpoints[i].Address())
		}
	}
	if e.knowsGone(after) {
		for _, hash := range e.past.of(after.Source.Name) {
			if last, remembered := e.past.last[hash]; remembered {
				leave(hash, last.Endpoint.Address)
			}
		}
	}
	for i := range after.Endpoints {
		hash := after.Endpoints[i].Hash()
		_, present := e.rows.ids[hash]
		if !seen[hash] && (hash == first || !present) {
			seen[hash] = true
			m.coming[after.Endpoints[i].Address()]++
		}
	}
	return m
}

// knowsGone reports whether remembered endpoints that a cluster does not have left it only now,
// or while hdsd was down: its sources have answered.
func (e *edit) knowsGone(k *catalog.Cluster) bool {
	answered := func(sources map[string]bool) bool {
		return sources[k.Source.Source] && sources[k.Source.EndpointSource()]
	}
	return len(e.past.last) > 0 && answered(e.answering) && !(e.settled && answered(e.answered))
}

// from returns the hash of the endpoint that an endpoint was before it moved, or may have been,
// if that is still there.
func (m *moves) from(address string) (before health.Hash, stays, ok bool) {
	before, ok = m.leaving[address]
	if !ok {
		before, stays = m.staying[address]
	}
	return before, stays, before != 0 && m.coming[address] == 1
}

// inherit gives a new endpoint the health of the one that it was before it moved, so that
// introduce finds it as after a restart.
func (e *edit) inherit(before, after *catalog.Cluster, hash health.Hash, key *health.Endpoint) {
	if _, known := e.past.last[hash]; known || before == nil && !e.knowsGone(after) {
		return
	}
	if e.moves == nil {
		e.moves = e.newMoves(before, after, hash)
	}
	from, stays, ok := e.moves.from(key.Address)
	if !ok {
		return
	}
	e.moveHeld(from, hash, stays)
	id, old := e.rows.of(from)
	if old == nil {
		if last, known := e.past.last[from]; known {
			e.past.move(from, hash, key)
			e.moveVoted(from, hash, false)
			e.recordMove(&last.Endpoint, key, last.Status, nil)
		}
		return
	}
	previous, status := old.key(), old.health()
	if !old.judged && old.override() == nil {
		return
	}
	votes := e.Votes(id)
	if stays {
		e.past.keepAs(old, votes.Since, hash, *key)
		e.moveVoted(from, hash, true)
		e.heirs[from] = heir{hash, votes.Since}
		return
	}
	more, left := e.forget(id)
	e.effects.LeftOut += left
	e.summarize(&e.decision, e.now, id, more)
	e.past.keepAs(old, votes.Since, hash, *key)
	if e.moved == nil {
		e.moved = map[health.Hash]bool{}
	}
	e.moved[from] = true
	delete(e.heirs, from)
	e.moveVoted(from, hash, false)
	e.recordMove(&previous, key, status, votes.Observations)
}

// inheritVersion gives an endpoint that is new in a version of a cluster the verdict that it has
// in another one, until it is checked as this one says. So a version that comes takes nothing
// down, and nothing back.
func (e *edit) inheritVersion(k *catalog.Cluster, hash health.Hash, key *health.Endpoint) {
	if _, known := e.past.last[hash]; known {
		return
	}
	for other := range e.clusters.siblings(k) {
		there := *key
		there.Cluster = other.Source.Name
		if id, r := e.rows.of(there.Hash()); r != nil && r.judged && r.status != health.Unknown {
			e.past.remember(hash, store.Held{Endpoint: *key, Status: r.status, Since: e.Votes(id).Since})
			return
		}
	}
}

// moveVoted stores the verdict of the votes under an override for where the endpoint is now.
func (e *edit) moveVoted(from, to health.Hash, stays bool) {
	votes, overridden := e.past.voted[to]
	if !overridden {
		return
	}
	if e.decision.Voted == nil {
		e.decision.Voted = map[health.Hash]*health.Verdict{}
	}
	e.decision.Voted[to] = &votes
	if !stays {
		e.decision.Unvoted = append(e.decision.Unvoted, from)
	}
}

// moveHeld keeps the health that a freeze holds.
func (e *edit) moveHeld(from, to health.Hash, stays bool) {
	frozen := e.publishing.freeze
	if frozen == nil {
		return
	}
	status, held := frozen.Held[from]
	if !held {
		return
	}
	if e.decision.Held == nil { // others still read the one before
		next := *frozen
		next.Held = maps.Clone(frozen.Held)
		e.decision.Held = &next
		e.publishing.setFreeze(&next)
	}
	e.decision.Held.Held[to] = status
	if !stays {
		delete(e.decision.Held.Held, from)
	}
}

// heir is an endpoint that came with the verdict of another one.
type heir struct {
	hash  health.Hash
	since time.Time // of that verdict
}

// hasMoved reports whether an endpoint that goes is now another one, which came before. If so,
// it records that. One that had verdicts of its own since then has a history of its own.
func (e *edit) hasMoved(r *row, votes []health.Observation) bool {
	heir, known := e.heirs[r.hash]
	if !known {
		return false
	}
	delete(e.heirs, r.hash)
	id, now := e.rows.of(heir.hash)
	if now == nil || !e.Votes(id).Since.Equal(heir.since) || now.health() != r.health() {
		return false
	}
	from, to := r.key(), now.key()
	e.recordMove(&from, &to, r.health(), votes)
	return true
}

// recordMove ends the history of an endpoint where it was, and goes on where it is now.
func (e *edit) recordMove(from, to *health.Endpoint, status health.Status, votes []health.Observation) {
	if status == health.Unknown {
		return
	}
	here, there := to.Locality, from.Locality
	e.decision.Transitions = append(e.decision.Transitions,
		health.Transition{Time: e.now, Endpoint: *from, From: status, To: health.Unknown, Reason: movedTo + placeOf(here), Moved: &here},
		health.Transition{Time: e.now, Endpoint: *to, From: health.Unknown, To: status, Reason: movedFrom + placeOf(there), Observations: votes, Moved: &there})
}

// placeOf writes a locality as region/zone/sub_zone, without the empty parts at its end.
func placeOf(l health.Locality) string {
	return "\"" + strings.TrimRight(l.Region+"/"+l.Zone+"/"+l.SubZone, "/") + "\""
}
