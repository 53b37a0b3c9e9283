package ruling

import (
	"strings"

	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// moves finds the endpoints of a cluster of which only the locality changes: one leaves,
// and one with the same address comes. Where several do, nobody can tell which is which.
type moves struct {
	leaving map[string]health.Hash // by address; several: 0
	coming  map[string]int         // by address
}

// newMoves compares two versions of a cluster.
func newMoves(before, after *catalog.Cluster) *moves {
	m := &moves{leaving: map[string]health.Hash{}, coming: map[string]int{}}
	had, has := make(map[health.Hash]bool, len(before.Hashes)), make(map[health.Hash]bool, len(after.Hashes))
	for _, hash := range after.Hashes {
		has[hash] = true
	}
	for i, hash := range before.Hashes {
		had[hash] = true
		if has[hash] {
			continue
		}
		address := before.Checked.Endpoints[i].Address
		if _, several := m.leaving[address]; several {
			hash = 0
		}
		m.leaving[address] = hash
	}
	for i, hash := range after.Hashes {
		if !had[hash] {
			m.coming[after.Checked.Endpoints[i].Address]++
		}
	}
	return m
}

// from returns the hash of the endpoint that an endpoint was before it moved, if it did.
func (m *moves) from(address string) (before health.Hash, ok bool) {
	before, ok = m.leaving[address]
	return before, ok && before != 0 && m.coming[address] == 1
}

// inherit gives a new endpoint the health of the one that it was before it moved, so that
// introduce finds it as after a restart.
func (e *edit) inherit(m *moves, id health.EndpointID) {
	r := &e.rows.all[id]
	if _, known := e.past.last[r.hash]; known {
		return
	}
	key := r.key()
	hash, ok := m.from(key.Address)
	if !ok {
		return
	}
	oldID, old := e.rows.of(hash)
	if old == nil || !old.checked() {
		return
	}
	was, status := old.key(), old.health()
	if !old.judged && old.override() == nil {
		return
	}
	votes := e.Votes(oldID)
	more, left := e.forget(oldID)
	e.effects.LeftOut += left
	e.summarize(&e.decision, e.now, oldID, more)
	e.past.keepAs(old, votes.Since, r.hash, key)
	if e.moved == nil {
		e.moved = map[health.Hash]bool{}
	}
	e.moved[hash] = true
	if verdict, overridden := e.past.voted[r.hash]; overridden {
		if e.decision.Voted == nil {
			e.decision.Voted = map[health.Hash]*health.Verdict{}
		}
		e.decision.Voted[r.hash] = &verdict
		e.decision.Unvoted = append(e.decision.Unvoted, hash)
	}
	e.recordMove(&was, &key, status, votes.Observations)
}

// recordMove ends the history of an endpoint where it was, and goes on where it is now.
func (e *edit) recordMove(from, to *health.Endpoint, status health.Status, votes []health.Observation) {
	if status == health.Unknown {
		return
	}
	e.decision.Transitions = append(e.decision.Transitions,
		health.Transition{Time: e.now, Endpoint: *from, From: status, To: health.Unknown, Reason: movedTo + placeOf(to.Locality), Moved: &to.Locality},
		health.Transition{Time: e.now, Endpoint: *to, From: health.Unknown, To: status, Reason: movedFrom + placeOf(from.Locality), Observations: votes, Moved: &from.Locality})
}

// placeOf writes a locality as region/zone/sub_zone, without the empty parts at its end.
func placeOf(l health.Locality) string {
	return "\"" + strings.TrimRight(l.Region+"/"+l.Zone+"/"+l.SubZone, "/") + "\""
}
