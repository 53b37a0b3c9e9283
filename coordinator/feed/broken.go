package feed

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hdsd/peer/limit"
	"hdsd/source"
)

// Broken is a source with a refused part. It continues with the last valid version.
type Broken struct {
	Name    string
	Problem string // the first one, with its place and the replacement in use
	Since   time.Time
}

// breakage tracks the broken sources. Intake.mu guards it, except for published.
type breakage struct {
	log       zerolog.Logger
	published atomic.Pointer[[]Broken]
	sets      map[string]*source.Set    // by source: the set in use
	episodes  map[string]*limit.Episode // by source, broken now or before
}

func newBreakage(log zerolog.Logger) *breakage {
	return &breakage{log: log, sets: map[string]*source.Set{}, episodes: map[string]*limit.Episode{}}
}

// note notes the problem of a source, empty without one. It returns the time since when the
// source is broken.
func (b *breakage) note(now time.Time, name, problem string) (start time.Time) {
	e := b.episodes[name]
	switch {
	case problem != "":
		if e == nil {
			e = &limit.Episode{}
			b.episodes[name] = e
		}
		if e.Begin(now, now) {
			b.log.Error().Str("event", "source_broken").Str("source", name).Msg(problem)
		}
		return e.Since()
	case e != nil:
		if duration, ok := e.End(now); ok {
			b.log.Info().Str("event", "source_broken_over").Str("source", name).Dur("lasted", duration).Msg("hdsd refuses nothing of the source any more")
		}
	}
	return time.Time{}
}

// configure forgets the sources that the configuration no longer has.
func (b *breakage) configure(names []string) {
	maps.DeleteFunc(b.episodes, func(name string, _ *limit.Episode) bool { return !slices.Contains(names, name) })
}

// publishBroken finds the broken sources, and publishes them for callers that must not wait.
func (in *Intake) publishBroken(now time.Time) {
	var list []Broken
	for _, name := range in.names {
		problem := in.problemOf(name)
		if start := in.breakage.note(now, name, problem); problem != "" {
			list = append(list, Broken{name, problem, start})
		}
	}
	in.breakage.published.Store(&list)
}

// Broken returns the broken sources. It does not wait.
func (in *Intake) Broken() []Broken {
	if list := in.breakage.published.Load(); list != nil {
		return *list
	}
	return nil
}

// problemOf describes the refused part of a source and its replacement; empty if nothing is
// refused. The first problem with a line comes first. The caller holds the lock.
func (in *Intake) problemOf(name string) string {
	set, count := in.breakage.sets[name], 0
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

// stillUsed describes the part in use of a source with a problem, unless the problem already
// does.
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
