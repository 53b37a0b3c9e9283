package store

import (
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
		shared := names{}
		return rows.ForEach(func(k, v []byte) error {
			t, ok := openCurrent(k, v, shared)
			if ok {
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
