package feed

import (
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hdsd/source"
	"hdsd/source/hold"
)

// delays is what waits of each source because it alternates. Guarded by Intake.mu, but
// for the count.
type delays struct {
	log    zerolog.Logger
	by     map[string]*hold.Delay // by source
	logged map[string]time.Time   // by source
	count  atomic.Int64           // how often changes of a cluster began to wait
}

func newDelays(log zerolog.Logger) *delays {
	return &delays{log: log, by: map[string]*hold.Delay{}, logged: map[string]time.Time{}}
}

// configure forgets the sources that are configured no more.
func (d *delays) configure(rules map[string]hold.Rule) {
	for name := range d.by {
		if _, there := rules[name]; !there {
			delete(d.by, name)
			delete(d.logged, name)
		}
	}
}

// take returns what is in use of a source that says set.
func (d *delays) take(now time.Time, set *source.Set) *source.Set {
	one := d.by[set.Source]
	if one == nil {
		one = hold.NewDelay()
		d.by[set.Source] = one
	}
	inUse := one.Take(now, set)
	for _, begun := range one.Begun() {
		d.count.Add(1)
		if at, ok := d.logged[set.Source]; ok && now.Sub(at) < quiet {
			continue
		}
		d.logged[set.Source] = now
		d.log.Warn().Str("event", "source_alternates").Str("source", set.Source).Str("cluster", begun.Cluster).
			Int("returns", begun.Returns).Dur("waits", begun.For).
			Msg("something in the cluster is again and again what it had been: its changes wait, longer each time")
	}
	return inUse
}

// due returns when the first has waited for its time; zero is never.
func (d *delays) due() (next time.Time) {
	for _, one := range d.by {
		next = earlier(next, one.Due())
	}
	return next
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
