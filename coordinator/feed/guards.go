package feed

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/reason"
	"hdsd/peer/limit"
	"hdsd/source"
	"hdsd/source/hold"
)

// guard stands between a source and the part of it that is in use.
type guard struct {
	hold  *hold.Hold
	delay *hold.Delay

	revision string        // revision on disk; empty: nothing is held there
	shrunk   limit.Episode // something is held
	delaying time.Time     // when a delay was last logged
}

// guards is the guard of each source. Intake.mu guards it, except for the count.
type guards struct {
	log      zerolog.Logger
	keep     func(source string, saved []hold.Saved) // over a restart; may be nil
	bySource map[string]*guard                       // by source
	delays   atomic.Int64                            // number of delayed changes of clusters
}

// quiet is the shortest time between two log lines about an alternating cluster of a source.
const quiet = time.Minute

func newGuards(log zerolog.Logger) *guards { return &guards{log: log, bySource: map[string]*guard{}} }

// holdRules returns the rule of each source.
func holdRules(c *configv1.Config) map[string]hold.Rule {
	rules := map[string]hold.Rule{}
	for _, source := range c.GetSources() {
		h := source.GetHoldShrinkage()
		rules[source.GetName()] = hold.Rule{Share: h.GetShare(), For: h.GetFor().AsDuration()}
	}
	return rules
}

// configure replaces the rules. It forgets the sources that are configured no more.
func (g *guards) configure(rules map[string]hold.Rule) {
	for name := range g.bySource {
		if _, configured := rules[name]; !configured {
			delete(g.bySource, name)
			g.save(name, nil)
		}
	}
	for name, rule := range rules {
		g.find(name).hold.Configure(rule)
	}
}

func (g *guards) find(name string) *guard {
	if g.bySource[name] == nil {
		g.bySource[name] = &guard{hold: hold.New(hold.Rule{}), delay: hold.NewDelay()}
	}
	return g.bySource[name]
}

// filter returns the set in use of a source, given its latest set.
func (g *guards) filter(now time.Time, set *source.Set, wanted func(string) bool) *source.Set {
	guard := g.find(set.Source)
	previous := guard.hold.Held()
	inUse := guard.hold.Apply(now, set, wanted)
	g.note(now, set.Source, previous, "its time is over, or the source has it again")
	inUse = guard.delay.Apply(now, inUse)
	for _, begun := range guard.delay.Begun() {
		g.delays.Add(1)
		if !guard.delaying.IsZero() && now.Sub(guard.delaying) < quiet {
			continue
		}
		guard.delaying = now
		g.log.Warn().Str("event", "source_alternates").Str("source", set.Source).Str("cluster", begun.Cluster).
			Int("returns", begun.Returns).Dur("waits", begun.For).
			Msg("something in the cluster is again and again what it had been: its changes wait, longer each time")
	}
	return inUse
}

// note logs the beginning and the end of a hold, and keeps the held part.
func (g *guards) note(now time.Time, name string, previous *hold.Held, reason string) {
	guard := g.find(name)
	held, revision := guard.hold.Held(), ""
	if held != nil {
		revision = held.Revision
	}
	if guard.revision != revision {
		guard.revision = revision
		g.save(name, guard.hold)
	}
	switch {
	case previous == nil && held != nil:
		if guard.shrunk.Begin(now, now) {
			status := guard.hold.Status()
			g.log.Warn().Str("event", "shrinkage_held").Str("source", name).
				Int("clusters", status.Clusters).Int("endpoints", status.Endpoints).
				Int("clusters_left", status.Held.Clusters).Int("endpoints_left", status.Held.Endpoints).Time("accepts_at", status.Held.AcceptsAt).
				Msg("the source takes away more than hold_shrinkage allows: what it takes away stays in use")
		}
	case previous != nil && held == nil:
		if _, logged := guard.shrunk.End(now); logged {
			status := guard.hold.Status()
			g.log.Info().Str("event", "shrinkage_over").Str("source", name).
				Int("clusters", status.Clusters).Int("endpoints", status.Endpoints).Msg("nothing of the source is held any more: " + reason)
		}
	}
}

// save keeps the held part of a source over a restart; nil: nothing is held.
func (g *guards) save(name string, held *hold.Hold) {
	switch {
	case g.keep == nil:
	case held == nil:
		g.keep(name, nil)
	default:
		g.keep(name, held.Save())
	}
}

// due returns the end of the first hold or delay; zero is never.
func (g *guards) due() (earliest time.Time) {
	for _, guard := range g.bySource {
		earliest = earlier(earliest, earlier(guard.hold.Due(), guard.delay.Due()))
	}
	return earliest
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// SourceState is the part of a source in use, and the part that would be left of it.
type SourceState struct {
	Name string
	hold.Status
	Problem string // refused part, and its replacement; empty without one
}

// Sources returns the state of each source, in the order of precedence.
func (in *Intake) Sources() []SourceState {
	in.mu.Lock()
	defer in.mu.Unlock()
	states := make([]SourceState, len(in.names))
	for i, name := range in.names {
		states[i] = in.state(name)
	}
	return states
}

// state returns the state of a source. The caller holds the lock.
func (in *Intake) state(name string) SourceState {
	s := SourceState{Name: name, Status: in.guards.find(name).hold.Status()}
	if in.breakage.sets[name] != nil {
		s.Problem = in.problemOf(name)
	}
	return s
}

// Accept accepts the removals of a source. start and revision identify the shown state; zero
// and empty accept any. It returns the part that was held, and the state afterwards.
func (in *Intake) Accept(name string, start time.Time, revision string) (accepted hold.Held, current SourceState, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.readers[name] == nil {
		return accepted, current, reason.New(codes.NotFound, reason.UnknownSource, fmt.Sprintf("there is no source %q: 'hdsd source list' shows all", name))
	}
	guarded := in.guards.find(name).hold
	held := guarded.Status().Held
	switch {
	case held == nil:
		return accepted, current, reason.New(codes.FailedPrecondition, reason.NothingHeld, fmt.Sprintf("nothing of source %q is held: there is nothing to accept", name))
	case !start.IsZero() && !start.Equal(held.Since), revision != "" && revision != held.Revision:
		return accepted, current, reason.New(codes.FailedPrecondition, reason.HoldChanged,
			fmt.Sprintf("something else of source %q is held than was shown: look again with 'hdsd source list', then accept that", name))
	}
	guarded.Accept()
	in.guards.note(in.Now(), name, held, "an operator has accepted it")
	in.merge(false)
	return *held, in.state(name), nil
}

// shareHeld publishes the held parts for callers that must not wait, and wakes the clock.
func (in *Intake) shareHeld() {
	var held []SourceState
	for _, name := range in.names {
		if in.guards.find(name).hold.Holds() {
			held = append(held, in.state(name))
		}
	}
	in.held.Store(&held)
	select {
	case in.moved <- struct{}{}:
	default:
	}
}

// Held returns the sources with held parts, without waiting.
func (in *Intake) Held() []SourceState {
	if held := in.held.Load(); held != nil {
		return *held
	}
	return nil
}

// tick applies the due ends of holds and delays, and returns its next deadline; zero: when
// moved fires.
func (in *Intake) tick(now time.Time) time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	if due := in.guards.due(); !due.IsZero() && !now.Before(due) && in.rules != nil {
		in.merge(false)
	}
	return in.guards.due()
}

// wanted returns a function that reports whether a cluster of another source uses an assignment
// of this one; nil for files, which cannot be asked.
func (in *Intake) wanted(name string) func(string) bool {
	if _, canAsk := in.readers[name].(interface{ Want(names []string) }); !canAsk {
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
