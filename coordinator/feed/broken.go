package feed

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hdsd/source"
)

// Broken is a source of which hdsd refuses something: what it used before stays in use.
type Broken struct {
	Name    string
	Problem string // the first, and what is in use instead
	Since   time.Time
}

// breaks is which sources are broken. Guarded by Intake.mu, but for what is shown.
type breaks struct {
	log    zerolog.Logger
	shown  atomic.Pointer[[]Broken]
	sets   map[string]*source.Set // by source: what is in use of it
	since  map[string]time.Time   // by source that is broken
	logged map[string]time.Time   // by source: when that was last logged
	begun  map[string]bool        // by source: the log says that it is broken
}

func newBreaks(log zerolog.Logger) *breaks {
	return &breaks{log: log, sets: map[string]*source.Set{}, since: map[string]time.Time{}, logged: map[string]time.Time{}, begun: map[string]bool{}}
}

// note takes note of what is wrong with a source; empty: nothing is.
func (b *breaks) note(now time.Time, name, problem string) {
	since, was := b.since[name]
	switch {
	case problem != "":
		if !was {
			b.since[name] = now
		}
		if last, ok := b.logged[name]; b.begun[name] || ok && now.Sub(last) < quiet {
			return
		}
		b.logged[name], b.begun[name] = now, true
		b.log.Error().Str("event", "source_broken").Str("source", name).Msg(problem)
	case was:
		delete(b.since, name)
		if b.begun[name] {
			b.begun[name] = false
			b.log.Info().Str("event", "source_broken_over").Str("source", name).Dur("lasted", now.Sub(since)).Msg("nothing of the source is refused any more")
		}
	}
}

// configure forgets the sources that are configured no more.
func (b *breaks) configure(names []string) {
	for name := range b.since {
		if !slices.Contains(names, name) {
			delete(b.since, name)
			delete(b.logged, name)
			delete(b.begun, name)
		}
	}
}

// shareBroken takes note of which sources are broken, and publishes them for those who must
// not wait.
func (in *Intake) shareBroken(now time.Time) {
	var all []Broken
	for _, name := range in.names {
		problem := in.problemOf(name)
		if in.breaks.note(now, name, problem); problem != "" {
			all = append(all, Broken{name, problem, in.breaks.since[name]})
		}
	}
	in.breaks.shown.Store(&all)
}

// Broken returns the sources of which something is refused, without waiting.
func (in *Intake) Broken() []Broken {
	if all := in.breaks.shown.Load(); all != nil {
		return *all
	}
	return nil
}

// problemOf says what of a source is refused, and what is in use instead; empty if nothing is
// refused. What has a place comes first. The caller holds the lock.
func (in *Intake) problemOf(name string) string {
	set, count := in.breaks.sets[name], 0
	var first *source.Problem
	for i := range set.Problems {
		p := &set.Problems[i]
		if p.Warning {
			continue
		}
		if count++; first == nil || first.Line == 0 && p.Line > 0 {
			first = p
		}
	}
	if first == nil {
		return ""
	}
	text := first.String() + in.stillUsed(name, first)
	if count > 1 {
		text += fmt.Sprintf(" (and %d more)", count-1)
	}
	return text
}

// stillUsed says what is in use of a source that has a problem, unless the problem says so.
func (in *Intake) stillUsed(name string, p *source.Problem) string {
	if in.latest[name].set.Kept {
		return " (the last valid version of the source stays in use)"
	}
	switch k := in.prepared[p.Resource]; {
	case k == nil || k.Latest.Source != name:
		return ""
	case k.Rejected != "":
		return " (the last valid version of it stays in use)"
	case k.Source.Rejected != "":
		return " (it is not in use)"
	}
	return ""
}
