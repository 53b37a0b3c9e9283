package feed

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/reason"
	"hdsd/source"
	"hdsd/source/hold"
)

// holds is what is held of each source. Guarded by Intake.mu.
type holds struct {
	log      zerolog.Logger
	keep     func(source string, saved []hold.Saved) // over a restart; may be nil
	by       map[string]*hold.Hold                   // by source
	revision map[string]string                       // by source: what was kept last; empty: nothing
	logged   map[string]time.Time                    // by source: when a hold was last logged
	begun    map[string]bool                         // by source: the log says that something is held
}

// quiet is the shortest time between two lines of the log that say that something of a
// source is held.
const quiet = time.Minute

func newHolds(log zerolog.Logger) *holds {
	return &holds{log: log, by: map[string]*hold.Hold{}, revision: map[string]string{}, logged: map[string]time.Time{}, begun: map[string]bool{}}
}

// holdRules returns the rule of each source.
func holdRules(c *configv1.Config) map[string]hold.Rule {
	all := map[string]hold.Rule{}
	for _, one := range c.GetSources() {
		h := one.GetHoldShrinkage()
		all[one.GetName()] = hold.Rule{Share: h.GetShare(), For: h.GetFor().AsDuration()}
	}
	return all
}

// configure replaces the rules. What is held of a source that is configured no more is
// forgotten.
func (h *holds) configure(rules map[string]hold.Rule) {
	for name := range h.by {
		if _, there := rules[name]; !there {
			delete(h.by, name)
			delete(h.logged, name)
			h.save(name, nil)
		}
	}
	for name, rule := range rules {
		h.of(name).Configure(rule)
	}
}

func (h *holds) of(name string) *hold.Hold {
	if h.by[name] == nil {
		h.by[name] = hold.New(hold.Rule{})
	}
	return h.by[name]
}

// take returns what is in use of a source that says set.
func (h *holds) take(now time.Time, set *source.Set, wanted func(string) bool) *source.Set {
	one := h.of(set.Source)
	was := one.Held()
	inUse := one.Take(now, set, wanted)
	h.note(now, set.Source, was, one, "its time is over, or the source has it again")
	return inUse
}

// note logs when a hold begins and ends, and keeps what is held.
func (h *holds) note(now time.Time, name string, was *hold.Held, one *hold.Hold, why string) {
	held, revision := one.Held(), ""
	if held != nil {
		revision = held.Revision
	}
	if h.revision[name] != revision {
		h.revision[name] = revision
		h.save(name, one)
	}
	if (was == nil) == (held == nil) {
		return
	}
	is := one.Status()
	switch {
	case was == nil:
		if at, ok := h.logged[name]; ok && now.Sub(at) < quiet {
			return
		}
		h.logged[name], h.begun[name] = now, true
		h.log.Warn().Str("event", "shrinkage_held").Str("source", name).
			Int("clusters", is.Clusters).Int("endpoints", is.Endpoints).
			Int("clusters_left", is.Held.Clusters).Int("endpoints_left", is.Held.Endpoints).Time("accepts_at", is.Held.AcceptsAt).
			Msg("the source takes away more than hold_shrinkage allows: what it takes away stays in use")
	case h.begun[name]:
		h.begun[name] = false
		h.log.Info().Str("event", "shrinkage_over").Str("source", name).
			Int("clusters", is.Clusters).Int("endpoints", is.Endpoints).Msg("nothing of the source is held any more: " + why)
	}
}

func (h *holds) save(name string, one *hold.Hold) {
	if h.keep == nil {
		return
	}
	if one == nil {
		h.keep(name, nil)
		return
	}
	h.keep(name, one.Save())
}

// due returns when the first hold is over; zero is never.
func (h *holds) due() (next time.Time) {
	for _, one := range h.by {
		next = earlier(next, one.Due())
	}
	return next
}

// SourceState is how much of a source is in use, and what would be left of it.
type SourceState struct {
	Name string
	hold.Status
	Problem string // what hdsd refuses of it, and what it uses instead; empty without one
}

// Sources returns the state of each source, in the order of precedence.
func (in *Intake) Sources() []SourceState {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := make([]SourceState, len(in.names))
	for i, name := range in.names {
		all[i] = in.state(name)
	}
	return all
}

// state returns the state of a source. The caller holds the lock.
func (in *Intake) state(name string) SourceState {
	s := SourceState{Name: name, Status: in.holds.of(name).Status()}
	if in.breakage.sets[name] != nil {
		s.Problem = in.problemOf(name)
	}
	return s
}

// Accept follows a source in what it took away. since and revision say what was shown of
// it; zero and empty accept anything. It returns what was held, and what is in use then.
func (in *Intake) Accept(name string, since time.Time, revision string) (was hold.Held, is SourceState, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.readers[name] == nil {
		return was, is, reason.New(codes.NotFound, reason.UnknownSource, fmt.Sprintf("there is no source %q: 'hdsd source list' shows all", name))
	}
	one := in.holds.of(name)
	held := one.Status().Held
	switch {
	case held == nil:
		return was, is, reason.New(codes.FailedPrecondition, reason.NothingHeld, fmt.Sprintf("nothing of source %q is held: there is nothing to accept", name))
	case !since.IsZero() && !since.Equal(held.Since), revision != "" && revision != held.Revision:
		return was, is, reason.New(codes.FailedPrecondition, reason.HoldChanged,
			fmt.Sprintf("something else of source %q is held than was shown: look again with 'hdsd source list', then accept that", name))
	}
	one.Accept()
	in.holds.note(in.Now(), name, held, one, "an operator has accepted it")
	in.merge(false)
	return *held, in.state(name), nil
}

// shareHeld publishes what is held for those who must not wait, and wakes the clock.
func (in *Intake) shareHeld() {
	var held []SourceState
	for _, name := range in.names {
		if in.holds.of(name).Holds() {
			held = append(held, in.state(name))
		}
	}
	in.held.Store(&held)
	select {
	case in.moved <- struct{}{}:
	default:
	}
}

// Held returns the sources of which something is held, without waiting.
func (in *Intake) Held() []SourceState {
	if held := in.held.Load(); held != nil {
		return *held
	}
	return nil
}

// tick follows what was held or waited for its time, and returns when to call it again; zero is
// when moved says so.
func (in *Intake) tick(now time.Time) time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	if at := in.due(); !at.IsZero() && !now.Before(at) && in.rules != nil {
		in.merge(false)
	}
	return in.due()
}

func (in *Intake) due() time.Time { return earlier(in.holds.due(), in.delays.due()) }

// wanted returns a function that tells whether a cluster of another source uses an
// assignment of this one; nil for files, which nobody asks.
func (in *Intake) wanted(name string) func(string) bool {
	if _, asked := in.readers[name].(interface{ Want(names []string) }); !asked {
		return nil
	}
	var services map[string]bool
	return func(service string) bool {
		if services == nil {
			services = map[string]bool{}
			for _, l := range in.lacking {
				if l.source != name {
					services[l.service] = true
				}
			}
		}
		return services[service]
	}
}
