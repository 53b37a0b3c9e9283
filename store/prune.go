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
	// pruneSize bounds the rows that one transaction deletes, so that groups do not wait long
	// behind it.
	pruneSize = 512

	// trimSize bounds early pruning, which must not fall behind the writer. Meanwhile, groups
	// have at most groupSize.
	trimSize = 2 * groupSize

	// eventsLooked is the number of events that one step examines.
	eventsLooked = 2 * pruneSize

	// currentLooked is the number of endpoints that one step examines.
	currentLooked = 8 * pruneSize

	// lookAhead bounds a run of transitions that an older hdsd dated in the future.
	lookAhead = 100_000
)

// pruner deletes rows older than the retention, and endpoints that no longer exist. The writer
// calls step between groups.
type pruner struct {
	db      *database
	time    *timekeeper
	intake  *intake
	diary   *journal
	damage  *damage
	quota   *quota
	onError func(error)

	pass        uint64                 // the number of the pass in progress; 0: none
	nextEvent   []byte                 // the key of the next event; nil: the first
	isKnown     func(health.Hash) bool // argument of Forget; nil when done
	nextCurrent []byte                 // the key of the next row of current health; nil: the first
}

// step does one small transaction of requested work, and one for the quota. written is the size
// of the previous group.
func (p *pruner) step(written int) {
	p.trimFor(written)
	if p.pass == 0 {
		p.pass = p.intake.pruneAsked()
	}
	if p.pass != 0 {
		if p.pruneSome() {
			return
		}
		p.intake.pruneDone(p.pass)
		p.pass = 0
	}
	if isKnown := p.intake.nextForget(); isKnown != nil && p.time.edge() > 0 {
		p.isKnown, p.nextCurrent = isKnown, nil
	}
	if p.isKnown != nil {
		more, err := p.forgetSome()
		if err != nil {
			p.onError(fmt.Errorf("history: forget endpoints: %w", err))
		}
		if !more {
			p.isKnown = nil
		}
	}
}

// trimFor prunes for the quota, in one transaction, at least as many transitions as written
// since the last.
func (p *pruner) trimFor(written int) {
	if p.quota.look() {
		p.trim(min(max(pruneSize, 2*written), trimSize))
	}
}

// busy reports whether the pruner has work beside that of the intake.
func (p *pruner) busy() bool { return p.quota.trimming || p.isKnown != nil }

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

// pruneEvents deletes events before edge. It examines some of them, and continues behind these
// the next time: a note may stand before older events.
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

// deleteAll deletes the oldest transitions in a transaction that ends with finish.
func (p *pruner) deleteAll(keys [][]byte, finish func(*bolt.Tx) error) error {
	last := number(keys[len(keys)-1])
	return p.time.prune(last, func(tx *bolt.Tx) error {
		if finish != nil {
			if err := finish(tx); err != nil {
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

// trim deletes some of the oldest transitions early, but never the newest of all. After an
// error, the next group tries again.
func (p *pruner) trim(limit int) {
	var keys [][]byte
	early := uint64(0) // real time of the newest of them
	err := p.db.view(func(tx *bolt.Tx) error {
		keys, early = p.oldest(tx, limit)
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
		p.quota.stop() // other rows exceed the quota
	default:
		p.quota.oldest.Store(int64(early))
		p.quota.pruned.Add(uint64(len(keys)))
	}
}

// oldest returns the keys of the oldest transitions, and the real time of the newest of them.
func (p *pruner) oldest(tx *bolt.Tx, limit int) (keys [][]byte, newest uint64) {
	line := p.time.timeline()
	last, _ := tx.Bucket(transitions).Cursor().Last()
	rows := tx.Bucket(transitions).Cursor()
	for k, v := rows.First(); k != nil && len(keys) < limit && !bytes.Equal(k, last); k, v = rows.Next() {
		keys = append(keys, slices.Clone(k))
		if s, ok := openStep(k, v); ok {
			newest = max(newest, line.Shown(number(k), s.time))
		}
	}
	return keys, newest
}

// old returns the keys of the first transitions up to one older than edge. Later dated ones
// before it were recorded earlier all the same.
func (p *pruner) old(tx *bolt.Tx, edge uint64) (keys [][]byte) {
	now := p.time.timeline()
	last, _ := tx.Bucket(transitions).Cursor().Last()
	rows, old := tx.Bucket(transitions).Cursor(), 0
	for k, v := rows.First(); k != nil && len(keys) < lookAhead && old < pruneSize; k, v = rows.Next() {
		aged := number(k) // unless more is known
		if s, ok := openStep(k, v); ok {
			aged = now.Aged(number(k), s.time)
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

// forgetSome deletes the other rows of some endpoints without transitions that isKnown denies,
// and reports whether any remain.
func (p *pruner) forgetSome() (more bool, err error) {
	var forgotten []health.Endpoint
	shared, next := names{}, []byte(nil)
	err = p.db.view(func(tx *bolt.Tx) error {
		kept, rows, read := tx.Bucket(byEndpoint).Cursor(), tx.Bucket(current).Cursor(), 0
		for k, v := rows.Seek(p.nextCurrent); k != nil; k, v = rows.Next() {
			if read == currentLooked || len(forgotten) == pruneSize {
				next = slices.Clone(k)
				return nil
			}
			read++
			t, ok := openCurrent(k, v, shared)
			if !ok || p.isKnown(t.Endpoint.Hash()) {
				continue
			}
			if found, _ := kept.Seek(k); !bytes.HasPrefix(found, k) {
				forgotten = append(forgotten, t.Endpoint)
			}
		}
		return nil
	})
	if err == nil && len(forgotten) > 0 {
		err = p.db.update(func(tx *bolt.Tx) error { return deleteCurrent(tx, forgotten) })
	}
	p.nextCurrent = next
	return next != nil && err == nil, err
}

func deleteCurrent(tx *bolt.Tx, forgotten []health.Endpoint) error {
	for _, e := range forgotten {
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
