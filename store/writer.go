package store

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	groupSize = 4096 // least bound of a group, in transitions
	groupTime = 10 * time.Millisecond

	// The writer rests after a transaction for three times as long, at most longestRest. So a flood of transitions
	// leaves the processors to decisions, and more rows share a page, which is written once.
	restShare   = 3
	longestRest = 200 * time.Millisecond

	longGroup  = 2 * time.Second // a transaction above this duration has too many transitions
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second

	// lookEvery is the interval between readings of the wall clock, besides those at commits,
	// and of unload.
	lookEvery = time.Minute
)

// writer is the goroutine that writes the file. It commits groups, prunes in between, reads the
// wall clock, and keeps the file's pages out of memory.
type writer struct {
	db      *database
	time    *timekeeper
	intake  *intake
	trail   *journal
	diary   *journal
	pruner  pruner
	options *Options

	asks    chan func()   // calls for run to make
	closing chan struct{} // closed when the store closes
	done    chan struct{} // closed when run has ended

	rest    time.Time // until when the writer rests, unless work is urgent
	dropped uint64    // transitions reported as dropped; owned by run, as rest is
}

// run commits group after group. When the store closes, it commits the rest and returns.
func (w *writer) run() {
	defer close(w.done)
	defer w.intake.end()
	pruning := time.NewTicker(w.options.pruneEvery)
	defer pruning.Stop()
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	if clock := w.time.clock(); clock.Doubted {
		w.options.OnClock(clock)
	}
	w.intake.askPrune()
	for w.wait(pruning.C, looking.C) {
		written := 0
		if g := w.nextGroup(); g != nil {
			if !w.save(g) {
				return
			}
			written = len(g.transitions)
		}
		w.reportDropped()
		w.pruner.step(written)
		w.answer() // also while there is much to prune
	}
	for g := w.nextGroup(); g != nil; g = w.nextGroup() {
		if !w.save(g) {
			return
		}
	}
	w.time.look()
	_ = w.time.save(*w.time.timeline()) // without it, the next start continues an earlier timeline
}

// nextGroup returns the next group, or nil if the queue is empty.
func (w *writer) nextGroup() *group { return w.intake.nextGroup(w.pruner.quota.room()) }

// close ends run and waits for it.
func (w *writer) close() {
	close(w.closing)
	<-w.done
}

// call runs f on the writer's goroutine and waits for it.
func (w *writer) call(ctx context.Context, f func()) error {
	called := make(chan struct{})
	select {
	case w.asks <- func() { f(); close(called) }:
		<-called
		return nil
	case <-w.done:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("the disk does not take the history: %w", context.Cause(ctx))
	}
}

// wait returns true when there is work, and false when the store closes.
func (w *writer) wait(pruning, looking <-chan time.Time) bool {
	var due <-chan time.Time
	for {
		pending, now := w.intake.due()
		if now || !w.intake.idle() || w.pruner.busy() {
			break
		}
		if pending && due == nil {
			timer := time.NewTimer(max(groupTime, time.Until(w.rest)))
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-w.intake.wake:
			continue
		case <-pruning:
			w.intake.askPrune()
			continue
		case <-looking:
			w.time.tick()
			w.db.unload()
			continue
		case ask := <-w.asks:
			ask()
			continue
		case <-w.closing:
			return false
		case <-due:
		}
		break
	}
	return !w.isClosing()
}

// answer runs one function passed to call, if any.
func (w *writer) answer() {
	select {
	case ask := <-w.asks:
		ask()
	default:
	}
}

func (w *writer) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// save commits a group, and retries until the disk takes all or a part of it: the rest then
// waits again. It returns false if the store closes and the last attempt failed too.
func (w *writer) save(g *group) bool {
	undo := w.time.record(g)
	g.unaudited = w.trail.moveTo(g, w.time.steady())
	w.diary.moveTo(g, w.time.steady())
	for _, s := range g.portions {
		w.diary.place(&s.events, w.time.steady())
		w.trail.place(&s.audit, w.time.steady())
	}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		last, began := w.isClosing(), time.Now()
		err := w.db.update(func(tx *bolt.Tx) error {
			if err := g.write(tx); err != nil {
				return err
			}
			return w.time.put(tx)
		})
		if err == nil {
			elapsed := time.Since(began)
			w.rest = began.Add(elapsed + min(restShare*elapsed, longestRest))
			w.saved(g, elapsed)
			return true
		}
		err = fmt.Errorf("history: write %s: %w", rowsOf(len(g.transitions), transitions), err)
		if w.intake.failed(err) {
			w.options.OnDisk(err)
		}
		w.options.OnError(err)
		w.reportDropped()
		if last {
			return false
		}
		w.pause(wait)
		undo = w.shrink(g, undo)
	}
}

// shrink makes the next attempt smaller, and frees room. If the page cache shows the failed
// attempt, the next one has to write the same.
func (w *writer) shrink(g *group, undo func()) func() {
	if w.db.view(func(*bolt.Tx) error { return nil }) != nil {
		return undo
	}
	undo() // the history on disk ends before the group
	w.intake.shrink(g)
	w.pruner.trimFor(len(g.transitions))
	return w.time.record(g)
}

// beginFailing reports that the disk fails before any work waits for it. The writer retries
// until the disk recovers. It comes before run.
func (w *writer) beginFailing(err error) {
	w.intake.failed(err)
	w.options.OnDisk(err)
	w.intake.work(func() { w.intake.submitted.rows++ })
}

// saved records that a group is on disk, and the duration of its transaction.
func (w *writer) saved(g *group, elapsed time.Duration) {
	if w.intake.committed(g, elapsed) {
		w.options.OnDisk(nil)
	}
	if g.gap != nil {
		w.options.OnGap(g.gap.Gap)
	}
	if missing := g.unaudited; missing.Transitions > 0 {
		w.options.OnAuditGap(AuditGap{missing.Start, missing.End, missing.Transitions})
	}
}

// pause waits, but no longer than until the store closes or a caller wants an attempt at once.
func (w *writer) pause(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for !w.intake.hurried() {
		select {
		case <-w.intake.wake:
		case <-timer.C:
			return
		case <-w.closing:
			return
		}
	}
}

// reportDropped reports transitions dropped since the last report.
func (w *writer) reportDropped() {
	if dropped := w.intake.stats().Dropped; dropped > w.dropped {
		w.options.OnError(fmt.Errorf("%w: %d, since more than %d waited for the disk", ErrDropped, dropped-w.dropped, w.options.MaxPending))
		w.dropped = dropped
	}
}
