package store

import (
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// pruneSize is how many rows one transaction deletes at most, so that groups
// do not wait long behind it.
const pruneSize = 512

// pruneSome does one small transaction of the pass that was asked for, if any.
func (s *Store) pruneSome() {
	pass, asked := s.intake.pruneAsked()
	if !asked {
		return
	}
	edge := s.edge()
	if edge == 0 {
		s.intake.pruneDone(pass)
		return
	}
	more, err := s.prune(edge)
	if err != nil {
		s.options.OnError(fmt.Errorf("history: delete what is older than %v: %w", time.Duration(s.retention.Load()), err))
	}
	if !more || err != nil {
		s.intake.pruneDone(pass) // after an error, the next pass goes on
	}
}

// edge is the recorded time before which nothing is kept; 0 for none.
func (s *Store) edge() uint64 {
	retention := time.Duration(s.retention.Load())
	if retention <= 0 {
		return 0
	}
	return nanos(s.options.now().Add(-retention))
}

// prune deletes the oldest transitions before edge, but never the newest of
// all, from which recorded time goes on.
func (s *Store) prune(edge uint64) (more bool, err error) {
	keys := make([][]byte, 0, pruneSize)
	err = s.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(transitions).Cursor()
		for k, _ := rows.First(); k != nil && len(keys) < pruneSize; k, _ = rows.Next() {
			if len(k) == 8 && (number(k) >= edge || number(k) == s.last) {
				break
			}
			keys = append(keys, append([]byte(nil), k...))
		}
		return nil
	})
	if err != nil || len(keys) == 0 {
		return false, err
	}
	return len(keys) == pruneSize, s.update(func(tx *bolt.Tx) error {
		for _, k := range keys {
			if err := s.deleteTransition(tx, k); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) deleteTransition(tx *bolt.Tx, k []byte) error {
	rows := tx.Bucket(transitions)
	t, ok := openTransition(k, rows.Get(k), names{})
	s.skipUnless(ok, transitions, k)
	if ok {
		cluster := uint64(health.ClusterHash(t.Endpoint.Cluster))
		if err := tx.Bucket(byCluster).Delete(key(cluster, number(k))); err != nil {
			return err
		}
		if err := tx.Bucket(byEndpoint).Delete(key(cluster, uint64(t.Endpoint.Hash()), number(k))); err != nil {
			return err
		}
	}
	return rows.Delete(k)
}

// forgetSome does what Forget asked for, if anything, once pruning is done:
// an endpoint without transitions loses its other rows.
func (s *Store) forgetSome() {
	if _, pruning := s.intake.pruneAsked(); pruning {
		return
	}
	known := s.intake.takeForget()
	edge := s.edge()
	if known == nil || edge == 0 {
		return
	}
	gone, err := s.unknown(known, edge)
	for err == nil && len(gone) > 0 {
		some := gone[:min(len(gone), pruneSize)]
		gone = gone[len(some):]
		err = s.update(func(tx *bolt.Tx) error { return forget(tx, some) })
	}
	if err != nil {
		s.options.OnError(fmt.Errorf("history: forget endpoints: %w", err))
	}
}

// unknown gives the last transitions of the endpoints to forget.
func (s *Store) unknown(known func(health.Hash) bool, edge uint64) (gone []health.Endpoint, err error) {
	shared := names{}
	err = s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(current).ForEach(func(k, v []byte) error {
			t, ok := openCurrent(k, v, shared)
			if ok && nanos(t.Time) < edge && !known(t.Endpoint.Hash()) {
				gone = append(gone, t.Endpoint)
			}
			return nil
		})
	})
	return gone, err
}

func forget(tx *bolt.Tx, gone []health.Endpoint) error {
	for _, e := range gone {
		cluster, hash := uint64(health.ClusterHash(e.Cluster)), uint64(e.Hash())
		if err := tx.Bucket(current).Delete(key(cluster, hash)); err != nil {
			return err
		}
		if err := tx.Bucket(addresses).Delete(addressKey(e.Address, cluster, hash)); err != nil {
			return err
		}
	}
	return nil
}
