package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"hdsd/health"
)

// intake is the queue of the writer. Transitions are bounded in number, including the group on
// its way. Of everything else only the latest row of each endpoint, checker or cluster waits.
type intake struct {
	wake chan struct{} // signals possible work

	// whole is held while the parts of an entry are added, and while a group is taken: no other group has a part
	// of the entry, but for transitions beyond the size of a group. It comes before mu.
	whole sync.Mutex

	mu        sync.Mutex
	closed    bool // the intake accepts nothing more
	ended     bool // the writer has ended
	pending   queue
	overflow  map[health.Hash]health.Transition // last dropped transition of each endpoint
	missing   Gap                               // transitions dropped since the last group
	plan      map[string][]health.Hash
	rows      changes
	fleet     fleetQueue // newer than plan and rows
	forgets   func(health.Hash) bool
	urgent    int    // callers of flush
	hurry     bool   // a caller wants an attempt at once, although the last one failed
	failures  uint64 // failed attempts
	submitted mark
	saved     mark
	prunes    passes
	changed   chan struct{} // closed and replaced on progress of saved or prunes, on a failed attempt, and when the writer ends
	stat      Stats
}

// passes counts passes of the pruner.
type passes struct{ requested, finished uint64 }

// mark counts submitted work.
type mark struct{ transitions, rows uint64 }

func (m mark) reached(target mark) bool {
	return m.transitions >= target.transitions && m.rows >= target.rows
}

// group is the content of one transaction.
type group struct {
	transitions []health.Transition
	places      []place // of transitions, once recorded
	overflow    map[health.Hash]health.Transition
	missing     Gap
	gap         *gap // missing, once recorded; nil for none
	plan        map[string][]health.Hash
	rows        changes
	portions    []*portion
	behind      Cursor // before the portions
	unaudited   Gap    // gap of the audit; none without Transitions
	upTo        mark
}

// place is a transition and the parts of its keys.
type place struct {
	recorded, cluster uint64
	endpoint          health.Hash
	transition        *health.Transition
}

func placeOf(recorded uint64, t *health.Transition) place {
	return place{recorded, uint64(hashOf(t.Endpoint.Cluster)), t.Endpoint.Hash(), t}
}

// compareCluster orders places as the index by cluster does.
func (p place) compareCluster(q place) int {
	return cmp.Or(cmp.Compare(p.cluster, q.cluster), cmp.Compare(p.recorded, q.recorded))
}

// compareEndpoint orders places as the index by endpoint does.
func (p place) compareEndpoint(q place) int {
	return cmp.Or(cmp.Compare(p.cluster, q.cluster), cmp.Compare(p.endpoint, q.endpoint), cmp.Compare(p.recorded, q.recorded))
}

func (p *place) sameEndpoint(q *place) bool {
	return p.cluster == q.cluster && p.endpoint == q.endpoint
}

func newIntake(limit int) *intake {
	return &intake{pending: newQueue(limit), wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// work runs f under the lock and wakes the writer.
func (in *intake) work(f func()) {
	in.mu.Lock()
	f()
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (in *intake) append(batch []health.Transition, now func() time.Time) {
	parts := pieces(batch)
	in.work(func() {
		if in.closed {
			in.stat.Dropped += uint64(len(batch))
			return
		}
		for _, part := range parts {
			in.pending.add(dated(part, now))
		}
		in.submitted.transitions += uint64(len(batch))
		in.drop(in.pending.count + in.stat.Pending - in.pending.limit)
	})
}

// drop removes the oldest transitions, but keeps the resulting health.
func (in *intake) drop(count int) {
	if count <= 0 {
		return
	}
	// Dropping a sixteenth more saves moving the rest at every call.
	count = min(count+in.pending.limit/16, in.pending.count)
	if in.overflow == nil {
		in.overflow = map[health.Hash]health.Transition{}
	}
	for _, part := range in.pending.shift(count) {
		for _, t := range part {
			in.overflow[t.Endpoint.Hash()] = t
			in.missing.add(t.Time)
		}
	}
	in.stat.Dropped += uint64(count)
	in.fleet.joinDropped(in.submitted.transitions - uint64(in.pending.count))
}

// savePlan stores which endpoints these checkers probe; nil deletes a checker. Other checkers stay as
// they are. Of several plans for one, the latest counts. The slices must not change afterwards.
func (in *intake) savePlan(changed map[string][]health.Hash) {
	in.work(func() {
		in.submitted.rows++
		if last := in.fleet.last(); last != nil {
			last.addRows(maps.Clone(changed), nil)
			return
		}
		if in.plan == nil {
			in.plan = map[string][]health.Hash{}
		}
		maps.Copy(in.plan, changed)
	})
}

func (in *intake) forget(isKnown func(health.Hash) bool) {
	in.work(func() { in.forgets = isKnown })
}

// end marks the end of the writer.
func (in *intake) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.notify()
}

func (in *intake) close() { in.work(func() { in.closed = true }) }

// due reports whether there is anything to commit, and whether it is urgent: a caller waits, or an eighth of the
// queue's room is taken.
func (in *intake) due() (pending, urgent bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	pending = !in.saved.reached(in.submitted)
	return pending, pending && (in.urgent > 0 || in.pending.count >= in.pending.limit/8)
}

// idle reports whether no pruning or forgetting is requested.
func (in *intake) idle() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.prunes.finished == in.prunes.requested && in.forgets == nil
}

// nextGroup returns the next group, of at most limit transitions, or nil if the queue is empty.
func (in *intake) nextGroup(limit int) *group {
	g, parts := in.nextParts(limit)
	if g != nil {
		g.transitions = slices.Concat(parts...)
	}
	return g
}

// nextParts returns the next group and, as parts, its transitions.
func (in *intake) nextParts(limit int) (g *group, parts [][]health.Transition) {
	in.whole.Lock()
	defer in.whole.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.saved.reached(in.submitted) {
		return nil, nil
	}
	portions, size := in.fleet.next(in.submitted.transitions-uint64(in.pending.count), min(in.pending.count, in.pending.largest, limit))
	parts = in.pending.shift(size)
	g = &group{
		overflow: in.overflow, missing: in.missing, plan: in.plan, rows: in.nextRows(in.pending.count == 0),
		portions: portions, behind: in.fleet.cursor, upTo: in.submitted,
	}
	in.overflow, in.missing, in.plan = nil, Gap{}, nil
	g.upTo.transitions -= uint64(in.pending.count)
	if len(in.fleet.portions) > 0 {
		g.upTo.rows = in.fleet.portions[0].before
	}
	in.stat.Pending = size
	return g, parts
}

// shrink makes the next groups smaller than one that failed, and returns its excess to the
// queue, portions as a whole. Its order and acknowledgements stay right.
func (in *intake) shrink(g *group) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pending.shrink(len(g.transitions))
	kept, size := divide(g.portions, g.upTo.transitions-uint64(len(g.transitions)), min(in.pending.largest, len(g.transitions)))
	rest := g.transitions[size:]
	if len(rest) == 0 {
		return
	}
	if kept < len(g.portions) {
		g.putBack(in, kept)
	}
	if in.overflow == nil {
		in.pending.putBack(slices.Clone(rest))
	} else { // newer ones were dropped meanwhile: drop the rest too, or it would pass for the latest
		for _, t := range slices.Backward(rest) {
			if _, newer := in.overflow[t.Endpoint.Hash()]; !newer {
				in.overflow[t.Endpoint.Hash()] = t
			}
			in.missing.add(t.Time)
		}
		in.stat.Dropped += uint64(len(rest))
	}
	g.transitions = slices.Clone(g.transitions[:size])
	g.upTo.transitions -= uint64(len(rest))
	in.stat.Pending = size
	in.putBackRows(g.rows)
}

// putBack returns all portions of a group but the first ones to the intake, whose lock the caller holds.
func (g *group) putBack(in *intake, kept int) {
	rest := g.portions[kept:]
	g.portions, g.upTo.rows = g.portions[:kept:kept], rest[0].before
	if len(in.fleet.portions) == 0 { // rows that came since are newer than the portions
		rest[len(rest)-1].addRows(in.plan, in.rows)
		in.plan, in.rows = nil, nil
	}
	in.fleet.putBack(rest)
}

// committed records that a group is on disk, and reports whether earlier attempts failed.
func (in *intake) committed(g *group, elapsed time.Duration) (ended bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	ended = in.stat.LastError != nil
	in.saved, in.fleet.cursor = g.upTo, g.cursor()
	in.pending.fit(len(g.transitions), elapsed)
	in.stat.Pending = 0
	in.stat.Committed += uint64(len(g.transitions))
	if g.gap != nil {
		in.stat.Gaps++
	}
	in.stat.LastError = nil
	in.notify()
	return ended
}

// failed records a failed attempt, and reports whether it is the first one.
func (in *intake) failed(err error) (began bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	began = in.stat.LastError == nil
	in.stat.LastError = err
	in.failures++
	in.notify()
	return began
}

// hurried reports, once, whether a caller wants an attempt at once.
func (in *intake) hurried() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	hurry := in.hurry
	in.hurry = false
	return hurry
}

// notify wakes all waiting goroutines. The caller holds the lock.
func (in *intake) notify() {
	close(in.changed)
	in.changed = make(chan struct{})
}

// moved returns the channel changed.
func (in *intake) moved() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.changed
}

func (in *intake) askPrune() { in.work(func() { in.prunes.requested++ }) }

// pruneAsked returns the number of the requested pass; 0 for none.
func (in *intake) pruneAsked() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.prunes.requested == in.prunes.finished {
		return 0
	}
	return in.prunes.requested
}

func (in *intake) pruneDone(pass uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.prunes.finished = pass
	in.notify()
}

// nextForget returns the argument of Forget, once.
func (in *intake) nextForget() func(health.Hash) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	isKnown := in.forgets
	in.forgets = nil
	return isKnown
}

func (in *intake) flush(ctx context.Context) error {
	in.mu.Lock()
	target := in.submitted
	in.urgent++
	in.mu.Unlock()
	in.work(func() {})
	defer in.work(func() { in.urgent-- })
	return in.wait(ctx, func() bool { return in.saved.reached(target) })
}

// durable is flush, but returns after the first failed attempt.
func (in *intake) durable(ctx context.Context) error {
	in.mu.Lock()
	target, failures := in.submitted, in.failures
	in.urgent++
	in.hurry = true
	in.mu.Unlock()
	in.work(func() {})
	defer in.work(func() { in.urgent-- })
	var failed error
	err := in.wait(ctx, func() bool {
		if in.failures > failures {
			failed = in.stat.LastError
		}
		return in.saved.reached(target) || failed != nil
	})
	return cmp.Or(err, failed)
}

// wait waits until reached returns true. It calls that under the lock.
func (in *intake) wait(ctx context.Context, reached func() bool) error {
	for {
		in.mu.Lock()
		ok, ended, changed := reached(), in.ended, in.changed
		in.mu.Unlock()
		switch {
		case ok:
			return nil
		case ended:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if last := in.stats().LastError; last != nil {
				return fmt.Errorf("history is not on disk yet: %w: %w", context.Cause(ctx), last)
			}
			return fmt.Errorf("history is not on disk yet: %w", context.Cause(ctx))
		}
	}
}

func (in *intake) stats() Stats {
	in.mu.Lock()
	defer in.mu.Unlock()
	stats := in.stat
	stats.Pending += in.pending.count
	return stats
}

// left returns an error that counts unsaved work.
func (in *intake) left() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.saved.reached(in.submitted) {
		return nil
	}
	return fmt.Errorf("history: lost transitions and other rows: %d: %w",
		in.submitted.transitions-in.saved.transitions+in.submitted.rows-in.saved.rows, in.stat.LastError)
}
