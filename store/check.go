package store

import (
	"errors"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Check reads the whole file. It returns ErrDamaged with every fault.
func (s *Store) Check() error {
	err := s.db.view(func(tx *bolt.Tx) error {
		_, _, err := schema(tx)
		return errors.Join(err, s.db.checkPages(tx), checkRows(tx))
	})
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrDamaged) {
		return err
	}
	return damaged(s.db.path, err)
}

// checkRows decodes every value of a file, and looks up every row named by an index.
func checkRows(tx *bolt.Tx) error {
	shared, rows := names{}, tx.Bucket(transitions)
	var bad []error
	check := func(bucket []byte, good func(k, v []byte) bool) {
		count := 0
		err := tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			if !good(k, v) {
				count++
			}
			return nil
		})
		if count > 0 {
			err = errors.New(rowsOf(count, bucket))
		}
		bad = append(bad, err)
	}
	check(transitions, func(k, v []byte) bool {
		t, ok := openTransition(k, v, shared)
		return ok && indexed(tx, &t, number(k))
	})
	check(byCluster, func(k, _ []byte) bool { return len(k) == 16 && rows.Get(k[8:]) != nil })
	check(byEndpoint, func(k, v []byte) bool { return goodInIndex(k, v) && rows.Get(k[16:]) != nil })
	check(current, func(k, v []byte) bool {
		t, ok := openCurrent(k, v, shared)
		return ok && tx.Bucket(addresses).Get(addressKey(t.Endpoint.Address, number(k), number(k[8:]))) != nil
	})
	for _, sealed := range sealedBuckets {
		if tx.Bucket(sealed.name) == nil {
			continue
		}
		check(sealed.name, func(k, v []byte) bool {
			row, ok := unseal(k, v)
			return ok && sealed.good(k, row)
		})
	}
	return errors.Join(bad...)
}

func indexed(tx *bolt.Tx, t *health.Transition, recorded uint64) bool {
	cluster := uint64(health.ClusterHash(t.Endpoint.Cluster))
	return tx.Bucket(byCluster).Get(key(cluster, recorded)) != nil &&
		tx.Bucket(byEndpoint).Get(key(cluster, uint64(t.Endpoint.Hash()), recorded)) != nil
}
