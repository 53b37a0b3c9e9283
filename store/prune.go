package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

const (
	// pruneSize is how many rows one transaction deletes at most, so that groups do
	// not wait long behind it.
	pruneSize = 512

	// trimSize is the same for early pruning, which may not fall behind the writer. Meanwhile,
	// groups have at most groupSize.
	trimSize = 2 * groupSize

	// eventsLooked is how many events one step looks at.
	eventsLooked = 2 * pruneSize

	// currentLooked is how many endpoints one step looks at.
	currentLooked = 8 * pruneSize

	// lookAhead is how many transitions that an older hdsd dated in the future may
	// stand before one that is not.
	lookAhead = 100_000
)

// pruner deletes what is older than the retention, and endpoints that nobody knows.
// The writer calls step between groups.
type pruner struct {
	db      *database
	time    *timekeeper
	intake  *intake
	diary   *diary
	damage  *damage
	quota   *quota
	onError func(error)

	nextEvent   []byte                 // the key of the event to look at next; nil: the first
	known       func(health.Hash) bool // of the argument of Forget; nil: it is done
	nextCurrent []byte                 // the key of the current health to look at next; nil: the first
}

// step does one small transaction of what was asked for, and one of what the quota needs.
// written is how many transitions the group before it has.
func (p *pruner) step(written int) {
	p.trimFor(written)
	if pass, asked := p.intake.pruneAsked(); asked {
		if p.pruneSome() {
			return
		}
		p.intake.pruneDone(pass)
	}
	if known := p.intake.takeForget(); known != nil && p.time.edge() > 0 {
		p.known, p.nextCurrent = known, nil
	}
	if p.known != nil {
		more, err := p.forgetSome()
		if err != nil {
			p.onError(fmt.Errorf("history: forget endpoints: %w", err))
		}
		if !more {
			p.known = nil
		}
	}
}

// trimFor does what the quota needs, in one transaction. It does not fall behind a writer that
// has written so many transitions since the one before.
func (p *pruner) trimFor(written int) {
	if p.quota.look() {
		p.trim(min(max(pruneSize, 2*written), trimSize))
	}
}

// busy reports whether there is more to do than the intake knows of.
func (p *pruner) busy() bool { return p.quota.trimming || p.known != nil }

// pruneSome deletes the oldest transitions, and reports whether there are more. After
// an error, the next pass continues.
func (p *pruner) pruneSome() (more bool) {
	edge := p.time.edge()
	if edge == 0 {
		return false
	}
	more, err := p.prune(edge)
	if err == nil && !more {
		more, err = p.pruneEvents(edge)
	}
	if err != nil {
		p.onError(fmt.Errorf("history: delete what is older than %v: %w", p.time.keep(), err))
	}
	return more && err == nil
}

// prune deletes the oldest transitions before edge, but never the newest of all, from
// which recorded time continues.
func (p *pruner) prune(edge uint64) (more bool, err error) {
	var keys [][]byte
	err = p.db.view(func(tx *bolt.Tx) error {
		keys = p.old(tx, edge)
		return nil
	})
	if err != nil || len(keys) == 0 {
		return false, err
	}
	return len(keys) == pruneSize, p.deleteAll(keys, nil)
}

// pruneEvents deletes events before edge. It looks at some of them, and goes on behind
// these the next time: a note may stand before older events.
func (p *pruner) pruneEvents(edge uint64) (more bool, err error) {
	var old [][]byte
	var next []byte
	err = p.db.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(events)
		if rows == nil {
			return nil
		}
		cursor, read := rows.Cursor(), 0
		for k, v := cursor.Seek(p.nextEvent); k != nil; k, v = cursor.Next() {
			if read++; read > eventsLooked {
				next = slices.Clone(k)
				return nil
			}
			if _, steady, ok := openEvent(k, v); ok && steady < edge {
				old = append(old, slices.Clone(k))
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if len(old) > 0 {
		err = p.db.update(func(tx *bolt.Tx) error {
			for _, k := range old {
				if err := tx.Bucket(events).Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		p.diary.forget(old)
		p.nextEvent = next
	}
	return next != nil, err
}

// deleteAll deletes the oldest transitions in a transaction, in which also runs.
func (p *pruner) deleteAll(keys [][]byte, also func(*bolt.Tx) error) error {
	last := number(keys[len(keys)-1])
	return p.time.prune(last, func(tx *bolt.Tx) error {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		for _, k := range keys {
			if err := p.deleteTransition(tx, k); err != nil {
				return err
			}
		}
		return deleteGaps(tx, last)
	})
}

// trim deletes some of the oldest transitions before their time, but never the newest of
// all. After an error, the next group tries again.
func (p *pruner) trim(most int) {
	var keys [][]byte
	early := uint64(0) // when the newest of them happened
	err := p.db.view(func(tx *bolt.Tx) error {
		keys, early = p.oldest(tx, most)
		return nil
	})
	if err == nil && len(keys) > 0 {
		err = p.deleteAll(keys, func(tx *bolt.Tx) error {
			early = max(early, readEarly(tx))
			return putEarly(tx, early)
		})
	}
	switch {
	case err != nil:
		p.onError(fmt.Errorf("history: delete the oldest transitions to stay below %d bytes: %w", p.quota.max.Load(), err))
		p.quota.stop()
	case len(keys) == 0:
		p.quota.stop() // the rest takes more than there is
	default:
		p.quota.oldest.Store(int64(early))
		p.quota.pruned.Add(uint64(len(keys)))
	}
}

// oldest returns the keys of the oldest transitions, and when the newest of them happened.
func (p *pruner) oldest(tx *bolt.Tx, most int) (keys [][]byte, at uint64) {
	line := p.time.timeline()
	last, _ := tx.Bucket(transitions).Cursor().Last()
	rows := tx.Bucket(transitions).Cursor()
	for k, v := rows.First(); k != nil && len(keys) < most && !bytes.Equal(k, last); k, v = rows.Next() {
		keys = append(keys, slices.Clone(k))
		if taken, ok := openStep(k, v); ok {
			at = max(at, line.Shown(number(k), taken.at))
		}
	}
	return keys, at
}

// old returns the keys of the first transitions up to one that is older than edge.
// Those before it that are dated later were recorded earlier all the same.
func (p *pruner) old(tx *bolt.Tx, edge uint64) (keys [][]byte) {
	now := p.time.timeline()
	last, _ := tx.Bucket(transitions).Cursor().Last()
	rows, old := tx.Bucket(transitions).Cursor(), 0
	for k, v := rows.First(); k != nil && len(keys) < lookAhead && old < pruneSize; k, v = rows.Next() {
		aged := number(k) // unless more is known
		if taken, ok := openStep(k, v); ok {
			aged = now.Aged(number(k), taken.at)
		}
		if bytes.Equal(k, last) || aged >= edge && !now.Future(aged) {
			break
		}
		if keys = append(keys, slices.Clone(k)); aged < edge {
			old = len(keys)
		}
	}
	return keys[:min(old, pruneSize)]
}

func (p *pruner) deleteTransition(tx *bolt.Tx, k []byte) error {
	rows := tx.Bucket(transitions)
	t, ok := openTransition(k, rows.Get(k), names{})
	p.damage.unless(ok, transitions, k)
	if ok {
		cluster := uint64(health.ClusterHash(t.Endpoint.Cluster))
		if err := tx.Bucket(byCluster).Delete(key(cluster, number(k))); err != nil {
			return err
		}
		indexed := key(cluster, uint64(t.Endpoint.Hash()), number(k))
		if err := errors.Join(tx.Bucket(byEndpoint).Delete(indexed), deleteMove(tx, indexed)); err != nil {
			return err
		}
	}
	return rows.Delete(k)
}

// forgetSome deletes the other rows of some endpoints that have no transitions and that
// known denies, and reports whether there are more to look at.
func (p *pruner) forgetSome() (more bool, err error) {
	var gone []health.Endpoint
	shared, next := names{}, []byte(nil)
	err = p.db.view(func(tx *bolt.Tx) error {
		kept, rows, read := tx.Bucket(byEndpoint).Cursor(), tx.Bucket(current).Cursor(), 0
		for k, v := rows.Seek(p.nextCurrent); k != nil; k, v = rows.Next() {
			if read == currentLooked || len(gone) == pruneSize {
				next = slices.Clone(k)
				return nil
			}
			read++
			t, ok := openCurrent(k, v, shared)
			if !ok || p.known(t.Endpoint.Hash()) {
				continue
			}
			if at, _ := kept.Seek(k); !bytes.HasPrefix(at, k) {
				gone = append(gone, t.Endpoint)
			}
		}
		return nil
	})
	if err == nil && len(gone) > 0 {
		err = p.db.update(func(tx *bolt.Tx) error { return deleteCurrent(tx, gone) })
	}
	p.nextCurrent = next
	return next != nil && err == nil, err
}

func deleteCurrent(tx *bolt.Tx, gone []health.Endpoint) error {
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
