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

// intake is what the writer has yet to write. Transitions are bounded by their number, those of the
// group on its way included. Of everything else only the latest of each endpoint, checker or
// cluster waits.
type intake struct {
	wake chan struct{} // there may be something to do

	mu       sync.Mutex
	closed   bool // nothing more comes in
	ended    bool // the writer is gone
	pending  queue
	overflow map[health.Hash]health.Transition // last of each endpoint that was dropped
	missing  Gap                               // all that was dropped since the last group
	plan     map[string][]health.Hash
	rows     changes
	forgets  func(health.Hash) bool
	prunes   uint64 // passes requested
	urgent   int    // callers of flush
	hurry    bool   // somebody asks for an attempt at once, although the last one failed
	failures uint64 // attempts that failed
	asked    mark
	saved    mark
	pruned   uint64        // passes ended
	changed  chan struct{} // closed and replaced when saved or pruned moves, an attempt fails or the writer ends
	stat     Stats
}

// mark counts everything handed over so far.
type mark struct{ transitions, others uint64 }

func (m mark) reached(target mark) bool {
	return m.transitions >= target.transitions && m.others >= target.others
}

// group is the content of one transaction.
type group struct {
	transitions []health.Transition
	places      []place // of transitions, once recorded
	overflow    map[health.Hash]health.Transition
	missing     Gap
	gap         *gap // the same, once recorded; nil for none
	plan        map[string][]health.Hash
	rows        changes
	unaudited   AuditGap // of the audit; no Entries for none
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

func (in *intake) append(all []health.Transition, now func() time.Time) {
	parts := pieces(all)
	in.work(func() {
		if in.closed {
			in.stat.Dropped += uint64(len(all))
			return
		}
		for _, part := range parts {
			in.pending.add(dated(part, now))
		}
		in.asked.transitions += uint64(len(all))
		in.drop(in.pending.count + in.stat.Pending - in.pending.limit)
	})
}

// drop takes out the oldest transitions, but keeps the health that they led to.
func (in *intake) drop(count int) {
	if count <= 0 {
		return
	}
	// A sixteenth more, so that not every call moves the rest.
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
}

func (in *intake) savePlan(changed map[string][]health.Hash) {
	in.work(func() {
		if in.plan == nil {
			in.plan = map[string][]health.Hash{}
		}
		maps.Copy(in.plan, changed)
		in.asked.others++
	})
}

func (in *intake) forget(known func(health.Hash) bool) {
	in.work(func() { in.forgets = known })
}

// end says that nothing more will be saved.
func (in *intake) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.notify()
}

func (in *intake) close() { in.work(func() { in.closed = true }) }

// due reports whether there is anything to commit, and whether to do it now.
func (in *intake) due() (something, now bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	something = !in.saved.reached(in.asked)
	return something, something && (in.urgent > 0 || in.pending.count >= groupSize)
}

// idle reports whether nobody asked for pruning or forgetting.
func (in *intake) idle() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.pruned == in.prunes && in.forgets == nil
}

// take returns the next group, of at most so many transitions, or nil if nothing waits.
func (in *intake) take(most int) *group {
	g, parts := in.takeParts(most)
	if g != nil {
		g.transitions = slices.Concat(parts...)
	}
	return g
}

// takeParts returns the next group and, as parts, its transitions.
func (in *intake) takeParts(most int) (g *group, parts [][]health.Transition) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.saved.reached(in.asked) {
		return nil, nil
	}
	size := min(in.pending.count, in.pending.largest, most)
	parts = in.pending.shift(size)
	g = &group{overflow: in.overflow, missing: in.missing, plan: in.plan, rows: in.takeRows(in.pending.count == 0), upTo: in.asked}
	in.overflow, in.missing, in.plan = nil, Gap{}, nil
	g.upTo.transitions -= uint64(in.pending.count)
	in.stat.Pending = size
	return g, parts
}

// shrink makes the next groups smaller than one that the disk did not take, and puts back
// what is too much of that one. Its order and what it acknowledges stay right.
func (in *intake) shrink(g *group) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pending.shrink(len(g.transitions))
	size := min(in.pending.largest, len(g.transitions))
	rest := g.transitions[size:]
	if len(rest) == 0 {
		return
	}
	if in.overflow == nil {
		in.pending.putBack(slices.Clone(rest))
	} else { // newer ones were dropped meanwhile: so is the rest, or it would pass for the latest
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

// committed records that a group is on disk, and reports whether attempts before failed.
func (in *intake) committed(g *group, took time.Duration) (ended bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	ended = in.stat.LastError != nil
	in.saved = g.upTo
	in.pending.fit(len(g.transitions), took)
	in.stat.Pending = 0
	in.stat.Committed += uint64(len(g.transitions))
	if g.gap != nil {
		in.stat.Gaps++
	}
	in.stat.LastError = nil
	in.notify()
	return ended
}

// failed records that the disk did not take a group, and reports whether it took the one
// before.
func (in *intake) failed(err error) (began bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	began = in.stat.LastError == nil
	in.stat.LastError = err
	in.failures++
	in.notify()
	return began
}

// hurried reports, once, whether somebody asks for an attempt at once.
func (in *intake) hurried() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	asked := in.hurry
	in.hurry = false
	return asked
}

// notify wakes everybody who waits. The caller holds the lock.
func (in *intake) notify() {
	close(in.changed)
	in.changed = make(chan struct{})
}

// moved returns a channel that is closed when changed is.
func (in *intake) moved() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.changed
}

func (in *intake) askPrune() { in.work(func() { in.prunes++ }) }

// pruneAsked returns the number of the pass to do, or false if there is none.
func (in *intake) pruneAsked() (uint64, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.prunes, in.prunes != in.pruned
}

func (in *intake) pruneDone(pass uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pruned = pass
	in.notify()
}

// takeForget returns the argument of Forget, once.
func (in *intake) takeForget() func(health.Hash) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	known := in.forgets
	in.forgets = nil
	return known
}

func (in *intake) flush(ctx context.Context) error {
	in.mu.Lock()
	target := in.asked
	in.urgent++
	in.mu.Unlock()
	in.work(func() {})
	defer in.work(func() { in.urgent-- })
	return in.wait(ctx, func() bool { return in.saved.reached(target) })
}

// durable is flush, but it ends with the first attempt that fails.
func (in *intake) durable(ctx context.Context) error {
	in.mu.Lock()
	target, failures := in.asked, in.failures
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

// left returns an error that counts what the writer left unsaved.
func (in *intake) left() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.saved.reached(in.asked) {
		return nil
	}
	return fmt.Errorf("history: lost transitions and other rows: %d: %w",
		in.asked.transitions-in.saved.transitions+in.asked.others-in.saved.others, in.stat.LastError)
}
