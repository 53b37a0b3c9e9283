package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hdsd/log/etcd"
	"hdsd/replica"
)

const (
	// retryPause is the time before a commit of unknown fate is repeated.
	retryPause = 200 * time.Millisecond

	// trimInterval is the time between two trims of the log.
	trimInterval = 10 * time.Second

	// resignPause is the time for which a replica that has resigned lets others lead.
	resignPause = time.Second

	// maxPause is the longest time between two looks at a log that this replica cannot follow.
	maxPause = 10 * time.Second
)

// Options are the parameters of an Engine.
type Options struct {
	Etcd etcd.Options

	// Post passes an event to the replica. It may wait.
	Post func(replica.Event)

	// Joined stores the fleet and the cursor, before the first entry, and again when the log goes on after a fault. The
	// log had the entries up to head then.
	Joined func(ctx context.Context, fleet string, cursor, head uint64) error

	// Viewed takes the replicas that have a session, and the leader, at each change.
	Viewed func(*etcd.View)
}

// Place is where a replica goes on with a log.
type Place struct {
	Fleet  string // that the replica belongs to; empty: it takes the one that it finds, or founds one
	Cursor uint64 // latest entry that the replica has
	Digest uint64 // of that entry; 0: unknown

	// Found founds the fleet, with a log that goes on after the cursor: the replica has a history and belongs to
	// no fleet. A retry has the same place.
	Found bool
}

// Engine is the session of a replica at etcd.
type Engine struct {
	options Options
	client  *etcd.Client

	mu    sync.Mutex
	term  term   // guarded by mu
	read  window // guarded by mu
	fault error  // why the replica cannot go on; guarded by mu

	tasks sync.WaitGroup
}

// term is the time in which the replica leads.
type term struct {
	epoch int64 // 0: it does not lead
	log   *etcd.Log
	ctx   context.Context
	end   context.CancelCauseFunc
}

// ErrOwnHistory is the error of a replica with a history that is not that of the fleet.
var ErrOwnHistory = errors.New("the database of this replica has a history of its own, and etcd has a fleet already: give the replica an empty data_dir, " +
	"and it copies the database of another replica; or begin a new fleet with this history, under another replication.etcd.prefix")

var errResigned = errors.New("the replica has resigned")

// Open begins the session. It does not wait for etcd. An error is about the options.
func Open(o Options) (*Engine, error) {
	client, err := etcd.Open(o.Etcd)
	if err != nil {
		return nil, err
	}
	return &Engine{options: o, client: client}, nil
}

// Close ends the session. Run must have returned.
func (e *Engine) Close() error { return e.client.Close() }

// Behind reports whether the log does not have the entries after a place any more, or begins with a history of
// another replica. Then the replica needs the database of another one, of those in sources. It waits for etcd until ctx
// ends. The errors are those of Join.
func (e *Engine) Behind(ctx context.Context, p Place) (fleet string, sources []etcd.Member, err error) {
	if p.Found {
		return "", nil, nil
	}
	log, err := e.client.Join(ctx, p.Fleet, p.Cursor)
	if err != nil {
		return "", nil, err
	}
	begin, err := log.Begin(ctx)
	if err != nil || p.Cursor+1 >= begin {
		return "", nil, err
	}
	view, _ := e.client.View()
	sources = slices.DeleteFunc(slices.Clone(view.Members), func(m etcd.Member) bool { return m.ID == e.options.Etcd.ID })
	return log.Fleet(), sources, nil
}

// Run follows the log from a place, and posts events until ctx ends. While the log is not as this replica needs it, Run
// looks again now and then. It returns an error if that does not help: ErrTrimmed or ErrOwnHistory.
func (e *Engine) Run(ctx context.Context, p Place) error {
	for pause := retryPause; ; pause = min(2*pause, maxPause) {
		joined, err := e.session(ctx, &p)
		if ctx.Err() != nil {
			return nil
		}
		e.fail(p.Cursor, err)
		if errors.Is(err, etcd.ErrTrimmed) || errors.Is(err, ErrOwnHistory) {
			return err
		}
		if joined {
			pause = retryPause
		}
		sleep(ctx, pause)
	}
}

// session joins the log, and follows it until the log is not as this replica needs it, or until ctx ends. It moves the
// place with the entries, and reports whether it came to follow the log.
func (e *Engine) session(ctx context.Context, p *Place) (joined bool, err error) {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log, err := e.join(running, p)
	if err != nil {
		return false, err
	}
	e.resume(p.Cursor)
	e.tasks.Go(func() { e.follow(running, cancel, log, p) })
	e.tasks.Go(func() { e.campaign(running, ctx, cancel, log) })
	e.tasks.Go(func() { e.tellMembers(running) })
	<-running.Done()
	e.tasks.Wait()
	return true, context.Cause(running)
}

// join joins the log at a place.
func (e *Engine) join(ctx context.Context, p *Place) (*etcd.Log, error) {
	if p.Found {
		if err := e.client.Found(ctx, p.Fleet, p.Cursor); errors.Is(err, etcd.ErrFounded) {
			return nil, fmt.Errorf("%w: %w", ErrOwnHistory, err)
		} else if err != nil {
			return nil, err
		}
	}
	log, err := e.client.Join(ctx, p.Fleet, p.Cursor)
	if err != nil {
		return nil, err
	}
	position, err := log.Verify(ctx, etcd.Position{Sequence: p.Cursor, Digest: p.Digest})
	if err != nil {
		return nil, err
	}
	head, err := log.Head(ctx)
	if err == nil {
		err = e.options.Joined(ctx, log.Fleet(), p.Cursor, head)
	}
	if err == nil {
		p.Fleet, p.Found, p.Digest = log.Fleet(), false, position.Digest
	}
	return log, err
}

// fail notes why this replica cannot follow the log behind an entry, and tells it. Attempts that fail like the one before are
// not told.
func (e *Engine) fail(cursor uint64, err error) {
	e.mu.Lock()
	before := e.fault
	e.fault = err
	e.mu.Unlock()
	if before == nil || before.Error() != err.Error() {
		e.options.Post(replica.LogEnded{After: cursor, Err: err})
	}
}

// resume tells that this replica can follow the log again, if it could not.
func (e *Engine) resume(cursor uint64) {
	e.mu.Lock()
	before := e.fault
	e.fault = nil
	e.mu.Unlock()
	if before != nil {
		e.options.Post(replica.LogResumed{After: cursor})
	}
}

// follow posts the entries of the log, and moves the place with them.
func (e *Engine) follow(ctx context.Context, fail context.CancelCauseFunc, log *etcd.Log, p *Place) {
	fail(log.Follow(ctx, etcd.Position{Sequence: p.Cursor, Digest: p.Digest}, func(entry etcd.Entry) error {
		e.mu.Lock()
		e.read.add(entry.Sequence, len(entry.Payload))
		e.mu.Unlock()
		p.Cursor, p.Digest = entry.Sequence, entry.Digest()
		e.options.Post(replica.Read{Sequence: entry.Sequence, Epoch: entry.Epoch, Digest: p.Digest, Payload: entry.Payload})
		return ctx.Err()
	}))
}

// campaign posts the beginning and the end of each leadership of this replica. The context of Run lives longer than
// that of the session.
func (e *Engine) campaign(ctx, run context.Context, fail context.CancelCauseFunc, log *etcd.Log) {
	for ctx.Err() == nil {
		epoch, err := log.Campaign(ctx)
		if err == nil {
			err = e.lead(ctx, run, log, epoch)
		}
		if err != nil {
			fail(err)
		}
	}
}

// lead posts an epoch of this replica, and waits for its end. It resigns if the session ends before.
func (e *Engine) lead(ctx, run context.Context, log *etcd.Log, epoch int64) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	t := term{epoch: epoch, log: log}
	t.ctx, t.end = context.WithCancelCause(ctx)
	defer t.end(nil)
	e.setTerm(t)
	e.options.Post(replica.Won{Epoch: epoch, Head: head})
	e.tasks.Go(func() { e.trim(t.ctx, log, epoch) })
	ended := log.AwaitEnd(t.ctx, epoch)
	e.setTerm(term{})
	e.options.Post(replica.Lost{Epoch: epoch})
	if ended == nil {
		return nil
	}
	if err := log.Resign(run, epoch); err != nil {
		return err
	}
	if errors.Is(ended, errResigned) {
		sleep(ctx, resignPause)
		return nil
	}
	return ended
}

// trim removes the entries from the log that it need not keep, now and then, while this replica leads.
func (e *Engine) trim(ctx context.Context, log *etcd.Log, epoch int64) {
	for trimmed := uint64(0); ; sleep(ctx, trimInterval) {
		e.mu.Lock()
		until := e.read.outdated()
		e.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if until <= trimmed {
			continue
		}
		if err := log.Trim(ctx, epoch, until); err != nil { // etcd is away, or the term has ended
			e.options.Etcd.Log.Debug().Str("event", "log_not_trimmed").Err(err).Msg("")
			continue
		}
		trimmed = until
	}
}

func (e *Engine) setTerm(t term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}

// tellMembers posts the replicas that have a session.
func (e *Engine) tellMembers(ctx context.Context) {
	for {
		view, changed := e.client.View()
		if view.Known {
			var ids []string
			for i := range view.Members {
				ids = append(ids, view.Members[i].ID)
			}
			e.options.Viewed(&view)
			e.options.Post(replica.Members{Replicas: ids, Leader: view.Leader, Epoch: view.Epoch})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Commit appends an entry to the log, and posts the outcome. It does not wait.
func (e *Engine) Commit(c replica.Commit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term.epoch != c.Epoch {
		return // Lost follows
	}
	log, ctx := e.term.log, e.term.ctx
	e.tasks.Go(func() { e.commit(ctx, log, c) })
}

func (e *Engine) commit(ctx context.Context, log *etcd.Log, c replica.Commit) {
	err := log.Commit(ctx, c.Epoch, c.Sequence, c.Payload)
	switch {
	case err == nil:
		e.options.Post(replica.Committed{Epoch: c.Epoch, Sequence: c.Sequence})
	case isRefusal(err):
		e.options.Post(replica.Refused{Epoch: c.Epoch, Sequence: c.Sequence, Err: err})
	default:
		sleep(ctx, retryPause)
		e.options.Post(replica.Undecided{Epoch: c.Epoch, Sequence: c.Sequence})
	}
}

// isRefusal reports whether an entry is not in the log and never will be.
func isRefusal(err error) bool {
	for _, refusal := range []error{
		etcd.ErrFenced, etcd.ErrTaken, etcd.ErrGap, etcd.ErrTooLarge, etcd.ErrOtherFleet, etcd.ErrWiped, etcd.ErrRestored, etcd.ErrDamaged,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// Resign ends the leadership of an epoch. It does not wait.
func (e *Engine) Resign(r replica.Resign) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term.epoch == r.Epoch {
		e.term.end(errResigned)
	}
}

// Received returns the sequence of the latest entry that the replica has got; 0 without one.
func (e *Engine) Received() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.read.latest
}

// Depose ends the session of the leader of an epoch, which runs no more. So another replica leads at once.
func (e *Engine) Depose(ctx context.Context, epoch int64) error { return e.client.Depose(ctx, epoch) }

// View returns the replicas and the leader. The next change closes the channel.
func (e *Engine) View() (etcd.View, <-chan struct{}) { return e.client.View() }

// Status returns the state of the session, and the error with which Run has ended.
func (e *Engine) Status() (etcd.Status, error) {
	s, _ := e.client.Status()
	e.mu.Lock()
	defer e.mu.Unlock()
	return s, e.fault
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
