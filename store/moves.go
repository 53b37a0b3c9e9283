package store

import (
	"bytes"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

// moves has a row for both transitions of an endpoint that only changed its locality. They are
// adjacent: the first ends the history in the old locality.
var moves = []byte("moves")

// move is a row of the bucket moves.
type move struct {
	recorded uint64
	locality health.Locality // the other one
	away     bool            // the endpoint moved to locality; otherwise it came from there
}

func encodeMove(t *health.Transition) []byte {
	return marshal(&storev1.Move{Locality: localityRow(*t.Moved), Away: t.To == health.Unknown})
}

func decodeMove(k, row []byte) (move, bool) {
	var m storev1.Move
	if len(k) != 24 || !unmarshal(row, &m) {
		return move{}, false
	}
	l := m.GetLocality()
	return move{number(k[16:]), health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}, m.GetAway()}, true
}

func (g *group) writeMoves(tx *bolt.Tx) error {
	for i := range g.places {
		place := &g.places[i]
		if place.transition.Moved == nil {
			continue
		}
		rows, err := tx.CreateBucketIfNotExists(moves)
		if err != nil {
			return err
		}
		k := key(place.cluster, uint64(place.endpoint), place.recorded)
		if err := rows.Put(k, seal(k, encodeMove(place.transition))); err != nil {
			return err
		}
	}
	return nil
}

// setMoved fills in the other locality of a transition if it belongs to a move. rows is nil if
// there are no moves.
func setMoved(rows *bolt.Bucket, recorded uint64, t *health.Transition) {
	if rows == nil || t.From != health.Unknown && t.To != health.Unknown {
		return
	}
	k := key(uint64(hashOf(t.Endpoint.Cluster)), uint64(t.Endpoint.Hash()), recorded)
	if m, ok := openMove(k, rows.Get(k)); ok {
		t.Moved = &m.locality
	}
}

func openMove(k, v []byte) (move, bool) {
	row, ok := unseal(k, v)
	if !ok {
		return move{}, false
	}
	return decodeMove(k, row)
}

// deleteMove deletes the move of a deleted transition.
func deleteMove(tx *bolt.Tx, k []byte) error {
	if rows := tx.Bucket(moves); rows != nil {
		return rows.Delete(k)
	}
	return nil
}

// moveBefore returns the last move of an endpoint before a recorded time.
func (p *past) moveBefore(row []byte, before uint64) (move, bool) {
	if p.moves == nil {
		return move{}, false
	}
	k, v := seekBefore(p.moves, append(slices.Clone(row), key(before)...))
	if !bytes.HasPrefix(k, row) {
		return move{}, false
	}
	m, ok := openMove(k, v)
	p.damage.unless(ok, moves, k)
	return m, ok
}

// isElsewhere reports whether the endpoint's last transition moved it away.
func (p *past) isElsewhere(row []byte) bool {
	m, ok := p.moveBefore(row, math.MaxUint64)
	if !ok || !m.away {
		return false
	}
	k, _ := seekBefore(p.endpoint, append(slices.Clone(row), key(math.MaxUint64)...))
	return len(k) == 24 && number(k[16:]) == m.recorded
}

// isMove reports whether the endpoint's transition at a recorded time belongs to a move.
func (p *past) isMove(row []byte, recorded uint64) bool {
	m, ok := p.moveBefore(row, max(recorded, recorded+1))
	return ok && m.recorded == recorded
}

// stay is a period that an endpoint spent in one locality.
type stay struct {
	endpoint health.Endpoint
	from, to uint64
	moved    bool // it begins with the transition of a move
}

// stays divides a period by the moves of an endpoint, the last stay first. Time before the first
// stay belongs to another endpoint or is unknown.
func (p *past) stays(e *health.Endpoint, from, to uint64) (found []stay) {
	next := stay{endpoint: *e, to: to}
	for before := uint64(math.MaxUint64); ; {
		row := rowOf(&next.endpoint)
		m, ok := p.moveBefore(row, before)
		if ok && before != math.MaxUint64 && m.away { // to where the stay behind it was
			before = m.recorded
			m, ok = p.moveBefore(row, before)
		}
		begin := uint64(0)
		if ok {
			begin, ok = p.movedAt(m.recorded)
		}
		if !ok || begin < from {
			next.from = from
			return append(found, next)
		}
		next.from, next.moved = min(begin, next.to), begin < next.to
		found = append(found, next)
		if m.away {
			return found
		}
		next = stay{endpoint: next.endpoint, to: next.from}
		next.endpoint.Locality, before = m.locality, m.recorded
	}
}

// movedAt returns the time of a move, or false if its transition is deleted.
func (p *past) movedAt(recorded uint64) (t uint64, ok bool) {
	k := key(recorded)
	s, ok := openStep(k, p.rows.Get(k))
	return p.dates.line.Shown(recorded, s.time), ok
}
