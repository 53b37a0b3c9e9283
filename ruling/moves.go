package ruling

import (
	"maps"
	"strings"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
)

// moves pairs the endpoints of a cluster that leave with those that come, by address: a pair has
// changed its locality only. If several endpoints of an address leave or come, the pairs are
// unknown.
type moves struct {
	leaving map[string]health.Hash // by address; 0 for several endpoints
	staying map[string]health.Hash // by address; 0 for several endpoints
	coming  map[string]int         // number of endpoints by address
}

// newMoves compares two versions of a cluster, including its remembered and certainly gone
// endpoints. The first version may be nil. The argument first is the first new endpoint.
func (e *edit) newMoves(previous, next *catalog.Cluster, first health.Hash) *moves {
	m := &moves{leaving: map[string]health.Hash{}, staying: map[string]health.Hash{}, coming: map[string]int{}}
	seen, listed := map[health.Hash]bool{}, make(map[health.Hash]bool, len(next.Endpoints))
	for i := range next.Endpoints {
		listed[next.Endpoints[i].Hash()] = true
	}
	leave := func(hash health.Hash, address string) {
		if seen[hash] {
			return
		}
		seen[hash] = true
		hashes := m.leaving
		if listed[hash] {
			hashes = m.staying
		}
		if _, several := hashes[address]; several {
			hash = 0
		}
		hashes[address] = hash
	}
	if previous != nil {
		for i := range previous.Endpoints {
			leave(previous.Endpoints[i].Hash(), previous.Endpoints[i].Address())
		}
	}
	if e.knowsGone(next) {
		for _, hash := range e.past.hashes(next.Source.Name) {
			if last, remembered := e.past.last[hash]; remembered {
				leave(hash, last.Endpoint.Address)
			}
		}
	}
	for i := range next.Endpoints {
		hash := next.Endpoints[i].Hash()
		_, present := e.rows.ids[hash]
		if !seen[hash] && (hash == first || !present) {
			seen[hash] = true
			m.coming[next.Endpoints[i].Address()]++
		}
	}
	return m
}

// knowsGone reports whether remembered but missing endpoints of a cluster left it only now, or
// while hdsd was down: its sources have answered.
func (e *edit) knowsGone(k *catalog.Cluster) bool {
	answered := func(sources map[string]bool) bool {
		return sources[k.Source.Source] && sources[k.Source.EndpointSource()]
	}
	return len(e.past.last) > 0 && answered(e.answering) && !(e.settled && answered(e.answered))
}

// origin returns the hash of a moved endpoint before its move. If no endpoint of the address
// leaves, it returns the one that stays, the probable origin.
func (m *moves) origin(address string) (hash health.Hash, stays, ok bool) {
	hash, ok = m.leaving[address]
	if !ok {
		hash, stays = m.staying[address]
	}
	return hash, stays, hash != 0 && m.coming[address] == 1
}

// inherit gives a moved endpoint its earlier health, so that introduce finds it as after a
// restart.
func (e *edit) inherit(previous, next *catalog.Cluster, hash health.Hash, key *health.Endpoint) {
	if _, known := e.past.last[hash]; known || previous == nil && !e.knowsGone(next) {
		return
	}
	if e.moves == nil {
		e.moves = e.newMoves(previous, next, hash)
	}
	origin, stays, ok := e.moves.origin(key.Address)
	if !ok {
		return
	}
	e.moveHeld(origin, hash, stays)
	id, oldRow := e.rows.find(origin)
	if oldRow == nil {
		if last, known := e.past.last[origin]; known {
			e.past.move(origin, hash, key)
			e.moveVoted(origin, hash, false)
			e.recordMove(&last.Endpoint, key, last.Status, nil)
		}
		return
	}
	oldKey, status := oldRow.key(), oldRow.health()
	if !oldRow.judged && oldRow.override() == nil {
		return
	}
	votes := e.Votes(id)
	if stays {
		e.past.keepAs(oldRow, votes.Since, hash, *key)
		e.moveVoted(origin, hash, true)
		e.heirs[origin] = heir{hash, votes.Since}
		return
	}
	earlier, omitted := e.forget(id)
	e.effects.LeftOut += omitted
	e.summarize(&e.decision, e.now, id, earlier)
	e.past.keepAs(oldRow, votes.Since, hash, *key)
	if e.moved == nil {
		e.moved = map[health.Hash]bool{}
	}
	e.moved[origin] = true
	delete(e.heirs, origin)
	e.moveVoted(origin, hash, false)
	e.recordMove(&oldKey, key, status, votes.Observations)
}

// inheritVersion gives an endpoint that is new in a version of a cluster its verdict in another
// version, until it is checked as this one says. So a new version takes no endpoint down, and
// none back up.
func (e *edit) inheritVersion(k *catalog.Cluster, hash health.Hash, key *health.Endpoint) {
	if _, known := e.past.last[hash]; known {
		return
	}
	held, known := e.leaving[hash]
	if !known {
		held, known = e.elsewhere(k, key)
	}
	if known {
		e.past.remember(hash, held)
	}
}

// elsewhere returns the verdict of an endpoint in another version of a cluster.
func (e *edit) elsewhere(k *catalog.Cluster, key *health.Endpoint) (held log.Health, known bool) {
	for version := range e.clusters.siblings(k) {
		moved := *key
		moved.Cluster = version.Source.Name
		if id, r := e.rows.find(moved.Hash()); r != nil && r.judged && r.status != health.Unknown {
			return log.Health{Endpoint: *key, Status: r.status, Since: e.Votes(id).Since}, true
		}
	}
	return held, false
}

// noteLeaving notes verdicts for the endpoints that are new in a version of a cluster before
// anything changes: the same change may remove them from the other versions.
func (e *edit) noteLeaving(k *catalog.Cluster) {
	for range e.clusters.siblings(k) {
		for i, hash := range k.Hashes {
			if _, present := e.rows.ids[hash]; present {
				continue
			}
			key := k.Checked.Key(i)
			if held, known := e.elsewhere(k, &key); known {
				if e.leaving == nil {
					e.leaving = map[health.Hash]log.Health{}
				}
				e.leaving[hash] = held
			}
		}
		return
	}
}

// moveVoted stores the verdict of the votes under an override for the moved endpoint.
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

// moveHeld moves the health held by a freeze.
func (e *edit) moveHeld(from, to health.Hash, stays bool) {
	frozen := e.publishing.freeze
	if frozen == nil {
		return
	}
	status, held := frozen.Held[from]
	if !held {
		return
	}
	if e.decision.Held == nil { // others still read the previous map
		changed := *frozen
		changed.Held = maps.Clone(frozen.Held)
		e.decision.Held = &changed
		e.publishing.setFreeze(&changed)
	}
	e.decision.Held.Held[to] = status
	if !stays {
		delete(e.decision.Held.Held, from)
	}
}

// heir is an endpoint that began with the verdict of another.
type heir struct {
	hash         health.Hash
	verdictSince time.Time // start of that verdict
}

// hasMoved reports whether a leaving endpoint moved to another one, which came before. If so,
// it records the move. An heir with later verdicts of its own has its own history.
func (e *edit) hasMoved(r *row, votes []health.Observation) bool {
	heir, known := e.heirs[r.hash]
	if !known {
		return false
	}
	delete(e.heirs, r.hash)
	id, current := e.rows.find(heir.hash)
	if current == nil || !e.Votes(id).Since.Equal(heir.verdictSince) || current.health() != r.health() {
		return false
	}
	from, to := r.key(), current.key()
	e.recordMove(&from, &to, r.health(), votes)
	return true
}

// recordMove ends the history of an endpoint at its old place, and continues it at the new one.
func (e *edit) recordMove(from, to *health.Endpoint, status health.Status, votes []health.Observation) {
	if status == health.Unknown {
		return
	}
	locality, oldLocality := to.Locality, from.Locality
	e.decision.Transitions = append(e.decision.Transitions,
		health.Transition{Time: e.now, Endpoint: *from, From: status, To: health.Unknown, Reason: movedTo + placeOf(locality), Moved: &locality},
		health.Transition{Time: e.now, Endpoint: *to, From: health.Unknown, To: status, Reason: movedFrom + placeOf(oldLocality), Observations: votes, Moved: &oldLocality})
}

// placeOf writes a locality as region/zone/sub_zone, without the empty parts at its end.
func placeOf(l health.Locality) string {
	return "\"" + strings.TrimRight(l.Region+"/"+l.Zone+"/"+l.SubZone, "/") + "\""
}
