package names

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	maxInFlight = 64                     // lookups
	pace        = 5 * time.Millisecond   // between two looks at the whole book
	gather      = 20 * time.Millisecond  // changes that are handed on together
	keepEvery   = 500 * time.Millisecond // between two writes of the file
)

// Options are the settings of a Resolver.
type Options struct {
	Resolvers []string // addresses with ports; empty: the system's
	File      string   // keeps the last good answers over a restart; empty: none
	Log       zerolog.Logger

	// Standings returns the standings of addresses that DNS no longer returns for a name. Run
	// calls it on its goroutine, and it may wait. nil: they are Down.
	Standings func(ctx context.Context, q Question, addresses []netip.Addr) map[netip.Addr]Standing
}

// Resolver knows the addresses of names used by sources. Any goroutine may call its methods.
type Resolver struct {
	options Options
	lookup  func(context.Context, Question) (v4, v6 half)
	wake    chan struct{}

	lookups, failures atomic.Uint64

	mu   sync.Mutex // guards the book
	book *book
}

// New makes a Resolver that has asked nothing yet. Unreadable answers are logged.
func New(o Options) *Resolver {
	kept, err := readKept(o.File)
	if err != nil {
		o.Log.Error().Str("event", "names_not_kept").Err(err).Msg("the last addresses of names cannot be read: they are resolved anew")
	}
	return &Resolver{options: o, lookup: newClient(o.Resolvers).lookup, wake: make(chan struct{}, 1), book: newBook(time.Now(), kept)}
}

// Need replaces the questions of a source.
func (r *Resolver) Need(source string, questions []Question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.book.need(time.Now(), source, questions)
	notify(r.wake)
}

// Answer returns the answer to a question.
func (r *Resolver) Answer(q Question) Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.answer(q)
}

// Serial changes with the answers.
func (r *Resolver) Serial() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.serial
}

// Stats counts names and lookups.
type Stats struct {
	Names, Failing    int
	Lookups, Failures uint64
}

// Stats returns the present counts.
func (r *Resolver) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := Stats{Names: len(r.book.states), Lookups: r.lookups.Load(), Failures: r.failures.Load()}
	for _, s := range r.book.states {
		if s.answer.Problem != "" {
			stats.Failing++
		}
	}
	return stats
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// result is the result of a lookup.
type result struct {
	question Question
	v4, v6   half
}

// turn is the state of Run.
type turn struct {
	*Resolver
	lookups  sync.WaitGroup
	results  chan result
	inFlight int
	stepped  time.Time // when step last ran
	handed   uint64    // serial of the answers handed on
	handOn   time.Time // zero: nothing to hand on
	kept     uint64    // serial of the answers on disk
	keep     time.Time // zero: nothing to write
}

// Run asks until its context ends. It calls changed on the caller's goroutine when answers
// have changed. Call Run once.
func (r *Resolver) Run(ctx context.Context, changed func()) {
	t := &turn{Resolver: r, results: make(chan result, maxInFlight)}
	ctx, cancel := context.WithCancel(ctx)
	defer t.lookups.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if pause := pace - time.Since(t.stepped); pause > 0 && !t.stepped.IsZero() {
			timer.Reset(pause)
		} else {
			timer.Reset(t.step(ctx, changed))
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wake:
		case r := <-t.results:
			t.handle(ctx, r)
		}
	}
	if !t.keep.IsZero() {
		t.write()
	}
}

// step does due work, and returns the time until the next.
func (t *turn) step(ctx context.Context, changed func()) time.Duration {
	now := time.Now()
	t.stepped = now
	t.mu.Lock()
	questions := t.book.due(now, maxInFlight-t.inFlight)
	serial, next := t.book.serial, t.book.next(t.inFlight+len(questions) < maxInFlight)
	t.mu.Unlock()
	for _, q := range questions {
		t.start(ctx, q)
	}
	if serial != t.handed && t.handOn.IsZero() {
		t.handOn = now.Add(gather)
	}
	if serial != t.kept && t.keep.IsZero() {
		t.keep = now.Add(keepEvery)
	}
	if !t.handOn.IsZero() && !now.Before(t.handOn) {
		t.handed, t.handOn = serial, time.Time{}
		changed()
	}
	if !t.keep.IsZero() && !now.Before(t.keep) {
		t.kept, t.keep = serial, time.Time{}
		t.write()
	}
	wait := time.Hour
	for _, due := range []time.Time{next, t.handOn, t.keep} {
		if !due.IsZero() {
			wait = min(wait, max(0, due.Sub(now)))
		}
	}
	return wait
}

// start begins a lookup. Its result always has room.
func (t *turn) start(ctx context.Context, q Question) {
	t.inFlight++
	t.Resolver.lookups.Add(1)
	t.lookups.Go(func() {
		v4, v6 := t.lookup(ctx, q)
		t.results <- result{q, v4, v6}
	})
}

// handle records the result of a lookup, and logs when a name begins to fail, and when it
// recovers.
func (t *turn) handle(ctx context.Context, r result) {
	t.inFlight--
	standings := t.standings(ctx, r)
	t.mu.Lock()
	received := time.Now()
	before, now, ok := t.book.record(received, r.question, r.v4, r.v6, standings, rand.Float64()) //nolint:gosec // jitter, so that clients do not come all at once
	beyond, rotates := t.book.rotation(received, r.question)
	t.mu.Unlock()
	if rotates {
		t.options.Log.Info().Str("event", "name_rotates").Str("name", r.question.Host).Int("addresses", len(now.Addresses)).Int("beyond", beyond).
			Msg("DNS gives the name's addresses in turn: those that are healthy stay in use while it gives others")
	}
	switch {
	case !ok:
		return
	case now.Problem != "":
		if t.failures.Add(1); before.Problem == "" {
			t.options.Log.Warn().Str("event", "name_unresolved").Str("name", r.question.Host).Int("addresses", len(now.Addresses)).
				Msg("a name cannot be resolved, and keeps its last addresses: " + now.Problem)
		}
	case before.Problem != "":
		t.options.Log.Info().Str("event", "name_resolved").Str("name", r.question.Host).Int("addresses", len(now.Addresses)).
			Msg("the name can be resolved again")
	}
}

// standings returns the standings of the addresses in use that a lookup's result lacks.
func (t *turn) standings(ctx context.Context, r result) map[netip.Addr]Standing {
	t.mu.Lock()
	missing := t.book.missing(time.Now(), r.question, r.v4, r.v6)
	t.mu.Unlock()
	if len(missing) == 0 || t.options.Standings == nil {
		return nil
	}
	return t.options.Standings(ctx, r.question, missing)
}

// write keeps the last good answers on disk.
func (t *turn) write() {
	if t.options.File == "" {
		return
	}
	t.mu.Lock()
	lines := t.book.good(time.Now())
	t.mu.Unlock()
	if err := writeKept(t.options.File, lines); err != nil {
		t.options.Log.Error().Str("event", "names_not_kept").Err(err).Msg("the last addresses of names are not on disk: a restart resolves them anew")
	}
}
