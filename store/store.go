package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Options says how to keep the history. The zero Options is good.
type Options struct {
	// Retention is how long transitions are kept; 0 is for ever.
	Retention time.Duration

	// LockTimeout is how long Open waits for another process, 5 s by default.
	LockTimeout time.Duration

	// MaxPending is how many transitions may wait for the disk, 262,144 by
	// default. More cost memory, less are dropped sooner when it fails.
	MaxPending int

	// OnError gets what goes wrong afterwards: errors of the disk, ErrDropped,
	// ErrSkipped. It must not block nor call Close.
	OnError func(error)

	// OnClock is told when the wall clock is doubted, and when no longer. It
	// must not block nor call Close.
	OnClock func(Clock)

	now        func() time.Time
	uptime     func() time.Duration
	migrations []migration
	mapSize    int
	maxSize    int
	pruneEvery time.Duration
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.LockTimeout, defaultLockTimeout)
	set(&o.pruneEvery, time.Hour)
	if o.MaxPending <= 0 {
		o.MaxPending = 262_144
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.OnClock == nil {
		o.OnClock = func(Clock) {}
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.uptime == nil {
		start := time.Now()
		o.uptime = func() time.Duration { return time.Since(start) }
	}
	if o.migrations == nil {
		o.migrations = migrations
	}
	if o.mapSize == 0 {
		o.mapSize = mapSize
	}
	return o
}

// version is the newest schema version.
func (o *Options) version() uint32 { return uint32(len(o.migrations)) + 1 }

// Store is an open history. All methods may be called from any goroutine.
type Store struct {
	// Set by Open.
	path    string
	options Options
	db      *bolt.DB
	file    *os.File
	intake  *intake
	asks    chan func() // for the writer to do
	closing chan struct{}
	done    chan struct{} // the writer has ended
	close   func() error
	created uint64 // when the history was begun; tells it from others

	// Owned by the writer.
	last    uint64 // recorded time of the last transition
	clock   clock
	dropped uint64        // as far as reported
	saved   time.Duration // when the timeline was put on disk

	// Atomic.
	durable   atomic.Int64           // latest transaction that is on disk
	retention atomic.Int64           // a time.Duration; 0 is for ever
	broken    atomic.Pointer[error]  // bbolt can no longer be used
	moment    atomic.Pointer[moment] // the latest; the writer puts it there

	committing sync.RWMutex // held by the writer while it commits

	known   clusterSet
	skipped skipped
}

// Open opens the history in a folder, or begins one. It waits a bounded time
// for a process that has it open. The errors ErrLocked, ErrVersion and
// ErrDamaged say what to do; the file is then as it was.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	db, file, written, err := openFile(ctx, dir, &o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: db.Path(), options: o, db: db, file: file, intake: newIntake(o.MaxPending),
		asks: make(chan func()), closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.retention.Store(int64(o.Retention))
	s.close = sync.OnceValue(s.shut)
	if err := s.load(written); err != nil {
		_ = s.closeFile()
		return nil, err
	}
	go s.write()
	return s, nil
}

// load reads what the writer continues from. The file was last written at a
// time that the wall clock gave then.
func (s *Store) load(written time.Time) error {
	// What an unclean end has left in the page cache may not be on disk yet.
	if err := s.db.Sync(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	s.durable.Store(1<<63 - 1)
	id := 0
	var noted clock
	err := s.view(func(tx *bolt.Tx) error {
		id = tx.ID()
		if k, _ := tx.Bucket(transitions).Cursor().Last(); len(k) == 8 {
			s.last = number(k)
		}
		s.clock = readClock(tx)
		noted = s.clock
		var err error
		if _, s.created, err = schema(tx); err != nil {
			return damaged(s.path, err)
		}
		s.resume(tx, written)
		for _, name := range (stateReader{store: s, tx: tx}).clusters() {
			s.known.add(name)
		}
		return nil
	})
	s.durable.Store(int64(id))
	if err == nil && s.clock != noted {
		err = s.saveTime(&s.moment.Load().timeline) // queries look there
	}
	return err
}

// Close commits what is left and closes the file. What the disk does not take
// at this last attempt is lost; the error says so.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.intake.close()
	close(s.closing)
	<-s.done
	return errors.Join(s.intake.left(), s.closeFile())
}

func (s *Store) closeFile() error {
	if s.broken.Load() != nil {
		unlock(s.file) // bbolt's Close could wait for ever
		return nil
	}
	return s.db.Close()
}

// Stats tells how the writer is doing.
type Stats struct {
	Pending   int    // transitions that wait for the disk
	Committed uint64 // transitions written since Open
	Dropped   uint64 // transitions that are missing from the history
	Skipped   uint64 // damaged values met
	Doubted   bool   // the wall clock is: see Clock
	LastError error  // of the disk; nil once it has taken a group again
	Bytes     int64  // size of the file
}

// Stats gives the present figures.
func (s *Store) Stats() Stats {
	stats := s.intake.stats()
	stats.Skipped, stats.Doubted = s.skipped.count(), s.moment.Load().doubted()
	if about, err := s.file.Stat(); err == nil { // it fails once closed
		stats.Bytes = about.Size()
	}
	return stats
}

// Append adds transitions to the history, in this order. It does not wait for
// the disk. The slice and what it refers to must not be changed afterwards.
func (s *Store) Append(all []health.Transition) {
	for i := range all {
		if i == 0 || all[i].Endpoint.Cluster != all[i-1].Endpoint.Cluster {
			s.remember(all[i].Endpoint.Cluster)
		}
	}
	s.intake.append(all, s.options.now)
}

// SavePlan stores which endpoints these checkers are to check; nil takes the
// checker out. Other checkers stay as they are, and of several plans for one
// the latest counts. The slices must not be changed afterwards.
func (s *Store) SavePlan(changed map[string][]health.Hash) { s.intake.savePlan(changed) }

// SetRetention changes how long transitions are kept; 0 is for ever. The next
// pass goes by it.
func (s *Store) SetRetention(d time.Duration) { s.retention.Store(int64(d)) }

// Flush waits until all that was handed over before is on disk.
func (s *Store) Flush(ctx context.Context) error { return s.intake.flush(ctx) }

// Forget lets go of the current health of endpoints that known denies and
// of which no transition is left. It is done in the
// background; known is called from there. Without a retention, nothing is let
// go of.
func (s *Store) Forget(known func(health.Hash) bool) { s.intake.forget(known) }
