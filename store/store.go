package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Store is an open history. All methods may be called from any goroutine.
type Store struct {
	*history // queries of what is committed

	db     *database
	time   *timekeeper
	damage *damage
	known  *clusterSet
	trail  *trail // of the audit
	diary  *diary // of the events
	intake *intake
	writer *writer
	quota  *quota
	now    func() time.Time
	close  func() error
}

// Open opens the history in a folder, or begins one. It waits a bounded time for a
// process that has it open. The errors ErrLocked, ErrVersion and ErrDamaged say what
// to do; the file is then as it was. If the disk only takes no writes, Open succeeds, and
// the history fails from the beginning on.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	found, err := openDatabase(ctx, dir, &o)
	if err != nil {
		return nil, err
	}
	db := found.db
	s := &Store{
		db: db, time: newTimekeeper(db, &o), damage: &damage{path: db.path, report: o.OnError},
		known: &clusterSet{}, trail: &trail{limit: maxAudit, most: maxAuditWaiting}, diary: newDiary(), intake: newIntake(o.MaxPending), now: o.now,
		quota: &quota{db: db, told: o.OnQuota},
	}
	s.quota.max.Store(o.MaxBytes)
	s.history = &history{db: db, time: s.time, known: s.known, damage: s.damage}
	s.writer = &writer{
		db: db, time: s.time, intake: s.intake, trail: s.trail, diary: s.diary, options: &o,
		pruner: pruner{db: db, time: s.time, intake: s.intake, diary: s.diary, damage: s.damage, quota: s.quota, onError: o.OnError},
		asks:   make(chan func()), closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.close = sync.OnceValue(s.shut)
	if err := db.view(func(tx *bolt.Tx) error { return s.load(tx, found.written) }); err != nil {
		_ = db.close()
		return nil, err
	}
	if found.unsettled != nil {
		s.writer.beginFailing(found.unsettled)
	}
	go s.writer.run()
	return s, nil
}

// load reads what the rooms continue from. The file was last written at a time that
// the wall clock gave then.
func (s *Store) load(tx *bolt.Tx, written time.Time) error {
	_, created, err := schema(tx)
	if err != nil {
		return damaged(s.db.path, err)
	}
	s.created = created
	s.time.load(tx, created, written)
	s.quota.load(tx)
	s.trail.load(tx)
	s.diary.load(tx)
	for _, name := range (stateReader{tx: tx, damage: s.damage, time: s.time}).clusters() {
		s.known.add(name)
	}
	return nil
}

// Close commits what is left and closes the file. What the disk does not take at this
// last attempt is lost; the error says so.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.intake.close()
	s.writer.close()
	return errors.Join(s.intake.left(), s.db.close())
}

// Stats describes the writer and the file.
type Stats struct {
	Pending   int    // transitions that wait for the disk
	Committed uint64 // transitions written since Open
	Dropped   uint64 // transitions that are missing from the history
	Gaps      uint64 // gaps written since Open
	Skipped   uint64 // damaged values met
	Doubted   bool   // the wall clock is: see Clock
	LastError error  // of the disk, also if it has not answered for a while; nil once it has taken a group again
	Bytes     int64  // size of the file
	Quota     Quota  // what of it is in use
}

// Stats returns the present figures.
func (s *Store) Stats() Stats {
	stats := s.intake.stats()
	stats.Skipped, stats.Doubted, stats.Bytes = s.damage.count(), s.time.timeline().Doubted(), s.db.size()
	stats.Quota = s.quota.figures()
	if waited := s.db.waited(); stats.LastError == nil && waited >= tooLong {
		stats.LastError = fmt.Errorf("history: the disk has not answered for %v", waited.Truncate(time.Second))
	}
	return stats
}

// Append adds transitions to the history, in this order. It does not wait for the
// disk. The slice and what it refers to must not change afterwards.
func (s *Store) Append(all []health.Transition) {
	for i := range all {
		if i == 0 || all[i].Endpoint.Cluster != all[i-1].Endpoint.Cluster {
			s.RememberClusters([]string{all[i].Endpoint.Cluster})
		}
	}
	s.intake.append(all, s.now)
}

// Flush waits until everything handed over before is on disk.
func (s *Store) Flush(ctx context.Context) error { return s.intake.flush(ctx) }

// Durable is Flush for callers in a hurry. While the disk does not take the history, it
// asks for one more attempt and returns the error of that. What it waited for is written
// as soon as the disk takes it.
func (s *Store) Durable(ctx context.Context) error { return s.intake.durable(ctx) }

// Committed returns a channel that is closed when more is committed, or when the store
// closes; sometimes for less. Whoever gets the channel first and then reads misses
// nothing.
func (s *Store) Committed() <-chan struct{} { return s.intake.moved() }

// SetRetention changes how long transitions are kept; 0 is for ever. The next pass
// goes by it.
func (s *Store) SetRetention(d time.Duration) { s.time.retention.Store(int64(d)) }

// SetMaxBytes changes how much of the file may be in use; 0 is any. The next group goes by
// it.
func (s *Store) SetMaxBytes(most int64) { s.quota.max.Store(most) }

// Forget deletes the current health of endpoints that known denies and that have no
// transitions left. It happens in the background, which calls known. Without a
// retention, nothing is deleted.
func (s *Store) Forget(known func(health.Hash) bool) { s.intake.forget(known) }

// Clock compares the wall clock with steady time at present.
func (s *Store) Clock() Clock { return s.time.clock() }

// ConfirmClock says that the wall clock is right, and returns the comparison before.
// It is on disk if there is no error.
func (s *Store) ConfirmClock(ctx context.Context, author string) (before Clock, err error) {
	asked := s.writer.do(ctx, func() { before, err = s.time.confirm(author) })
	if asked != nil {
		return Clock{}, asked
	}
	return before, err
}
