package store

import (
	"math"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Held is the last known health of an endpoint.
type Held struct {
	Endpoint health.Endpoint
	health.Verdict
}

// Current gives the last known health of all endpoints, by their hashes.
func (s *Store) Current() (map[health.Hash]Held, error) {
	var all map[health.Hash]Held
	err := s.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(current)
		all = map[health.Hash]Held{}
		shared, endpoints := names{}, tx.Bucket(byEndpoint).Cursor()
		return rows.ForEach(func(k, v []byte) error {
			t, ok := openCurrent(k, v, shared)
			if ok {
				s.redateLast(endpoints, k, &t)
				all[health.Hash(number(k[8:]))] = Held{t.Endpoint, verdict(&t)}
			}
			s.skipUnless(ok, current, k)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// openCurrent reads a row of the current health.
func openCurrent(k, v []byte, shared names) (health.Transition, bool) {
	row, ok := unseal(k, v)
	if !ok || len(k) != 16 {
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
