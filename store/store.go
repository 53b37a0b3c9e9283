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

	db       *database
	time     *timekeeper
	damage   *damage
	clusters *clusterSet
	trail    *journal // of the audit
	diary    *journal // of the events
	intake   *intake
	writer   *writer
	quota    *quota
	now      func() time.Time
	close    func() error
}

// Open opens the history in a folder, or creates one. It waits a bounded time for another
// process that has it open. The errors ErrLocked, ErrVersion and ErrDamaged say what to do; the
// file is unchanged then. If the disk only refuses writes, Open succeeds, and the history fails
// from the start.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	found, err := openDatabase(ctx, dir, &o)
	if err != nil {
		return nil, err
	}
	db := found.db
	s := &Store{
		db: db, time: newTimekeeper(db, &o), damage: &damage{path: db.path, report: o.OnError},
		clusters: &clusterSet{}, trail: newTrail(), diary: newDiary(), intake: newIntake(o.MaxPending), now: o.now,
		quota: &quota{db: db, report: o.OnQuota},
	}
	s.quota.max.Store(o.MaxBytes)
	s.history = &history{db: db, time: s.time, clusters: s.clusters, damage: s.damage}
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

// load reads the state of the parts. written is the wall clock's time of the last write.
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
	cursor, ok := readCursor(tx)
	s.damage.unless(ok, header, fleetKey)
	s.intake.fleet.load(cursor)
	for _, name := range (stateReader{tx: tx, damage: s.damage, time: s.time}).clusters() {
		s.clusters.add(name)
	}
	return nil
}

// Close commits queued work and closes the file. If this last attempt fails, the rest is lost;
// the error says so.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.intake.close()
	s.writer.close()
	return errors.Join(s.intake.left(), s.db.close())
}

// Stats describes the writer and the file.
type Stats struct {
	Pending   int    // transitions waiting for the disk
	Committed uint64 // transitions written since Open
	Dropped   uint64 // transitions missing from the history
	Gaps      uint64 // gaps written since Open
	Skipped   uint64 // damaged values found
	Doubted   bool   // the wall clock is doubted: see Clock
	LastError error  // error of the disk, or its long silence; nil after the next committed group
	Bytes     int64  // size of the file
	Quota     Quota  // use of the file
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
// disk. The slice and what it refers to must not change afterwards. A database with a fleet diverges.
func (s *Store) Append(batch []health.Transition) {
	s.diverge()
	s.rememberClustersOf(s.intake, batch)
	s.intake.append(batch, s.now)
}

// Flush waits until all work submitted before is on disk.
func (s *Store) Flush(ctx context.Context) error { return s.intake.flush(ctx) }

// Durable is Flush for urgent callers. While the disk fails, it requests one more attempt and
// returns that attempt's error. The work stays queued.
func (s *Store) Durable(ctx context.Context) error { return s.intake.durable(ctx) }

// Committed returns a channel that is closed on the next commit, when the store closes, and
// sometimes without either. A caller that gets the channel before it reads misses nothing.
func (s *Store) Committed() <-chan struct{} { return s.intake.moved() }

// SetRetention sets how long transitions are kept; 0 is for ever. It applies from the next pass.
func (s *Store) SetRetention(d time.Duration) { s.time.retention.Store(int64(d)) }

// SetMaxBytes bounds the file's pages in use; 0 is no bound. It applies from the next group.
func (s *Store) SetMaxBytes(limit int64) { s.quota.max.Store(limit) }

// Forget deletes the current health of endpoints that isKnown denies and that have no
// transitions left. It runs in the background, which calls isKnown. Without a retention, nothing
// is deleted.
func (s *Store) Forget(isKnown func(health.Hash) bool) { s.intake.forget(isKnown) }

// Clock compares the wall clock with steady time at present.
func (s *Store) Clock() Clock { return s.time.clock() }

// ConfirmClock declares the wall clock right, and returns the comparison before. Without an
// error, it is on disk.
func (s *Store) ConfirmClock(ctx context.Context, author string) (before Clock, err error) {
	callErr := s.writer.call(ctx, func() { before, err = s.time.confirm(author) })
	if callErr != nil {
		return Clock{}, callErr
	}
	return before, err
}
