package store

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// pruneSize is how many rows one transaction deletes at most, so that groups
// do not wait long behind it.
const pruneSize = 512

// lookAhead is how many transitions may be dated in the future, where an older
// hdsd has recorded them, before one that is not is found behind them.
const lookAhead = 100_000

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

// edge is the steady time before which nothing is kept; 0 for none.
func (s *Store) edge() uint64 {
	retention := time.Duration(s.retention.Load())
	if retention <= 0 {
		return 0
	}
	if steady := s.steadyTime(); steady > uint64(retention) {
		return steady - uint64(retention)
	}
	return 0
}

// prune deletes the oldest transitions before edge, but never the newest of
// all, from which recorded time goes on.
func (s *Store) prune(edge uint64) (more bool, err error) {
	now := *s.moment.Load()
	var keys [][]byte
	err = s.view(func(tx *bolt.Tx) error {
		keys = s.old(tx, &now.timeline, edge)
		return nil
	})
	if err != nil || len(keys) == 0 {
		return false, err
	}
	now.pruned = number(keys[len(keys)-1])
	now.drop()
	err = s.update(func(tx *bolt.Tx) error {
		for _, k := range keys {
			if err := s.deleteTransition(tx, k); err != nil {
				return err
			}
		}
		return now.put(tx)
	})
	if err == nil {
		s.moment.Store(&now)
	}
	return len(keys) == pruneSize, err
}

// old gives the keys of the first transitions up to one that is older than edge.
// Those before it that are dated later were recorded earlier all the same.
func (s *Store) old(tx *bolt.Tx, now *timeline, edge uint64) (keys [][]byte) {
	rows, old, future := tx.Bucket(transitions).Cursor(), 0, add(now.steady, uint64(mostLeap))
	for k, v := rows.First(); k != nil && len(keys) < lookAhead && old < pruneSize; k, v = rows.Next() {
		aged := number(k) // where nothing else is known
		if taken, ok := openStep(k, v); ok {
			aged = now.aged(number(k), taken.at)
		}
		if number(k) == s.last || aged >= edge && aged <= future {
			break
		}
		if keys = append(keys, slices.Clone(k)); aged < edge {
			old = len(keys)
		}
	}
	return keys[:min(old, pruneSize)]
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
	if known == nil || s.edge() == 0 {
		return
	}
	gone, err := s.unknown(known)
	for err == nil && len(gone) > 0 {
		some := gone[:min(len(gone), pruneSize)]
		gone = gone[len(some):]
		err = s.update(func(tx *bolt.Tx) error { return forget(tx, some) })
	}
	if err != nil {
		s.options.OnError(fmt.Errorf("history: forget endpoints: %w", err))
	}
}

// unknown gives the endpoints to forget: those without transitions.
func (s *Store) unknown(known func(health.Hash) bool) (gone []health.Endpoint, err error) {
	shared := names{}
	err = s.view(func(tx *bolt.Tx) error {
		kept := tx.Bucket(byEndpoint).Cursor()
		return tx.Bucket(current).ForEach(func(k, v []byte) error {
			t, ok := openCurrent(k, v, shared)
			if !ok || known(t.Endpoint.Hash()) {
				return nil
			}
			if at, _ := kept.Seek(k); !bytes.HasPrefix(at, k) {
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
