package store

import (
	"math"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// openCurrent reads a row of the current health.
func openCurrent(k, v []byte, shared names) (health.Transition, bool) {
	row, ok := unseal(k, v)
	if !ok {
		return health.Transition{}, false
	}
	return decodeCurrent(k, row, shared)
}

func decodeCurrent(k, row []byte, shared names) (health.Transition, bool) {
	if len(k) != 16 {
		return health.Transition{}, false
	}
	return decodeRecord(row, 0, shared)
}

// redateLast puts right what a wrong clock has dated of an endpoint's last
// transition, while that is kept.
func (s *Store) redateLast(endpoints *bolt.Cursor, row []byte, t *health.Transition) {
	now := s.moment.Load()
	if len(now.strays) == 0 {
		return
	}
	last := newSpan(endpoints, row, []interval{{0, math.MaxUint64}}, true)
	if recorded, ok := last.next(); ok {
		now.redate(recorded, t)
	}
}
