package coordinator

import (
	"fmt"
	"strings"
	"sync"

	"hdsd/source"
)

// awaited are the sources that have not said anything since hdsd's start, or not of
// what clusters of others take from them, and for which it still waits. Until there
// is none, nobody is told that something is not there.
type awaited struct {
	over chan struct{} // closed when none is left, for ever

	mu    sync.Mutex // guards what follows
	all   sources    // that are waited for
	heard map[string]*source.Set
	ended bool
}

func newAwaited() *awaited {
	return &awaited{over: make(chan struct{}), heard: map[string]*source.Set{}}
}

// expect waits for those of the sources that are upstreams, and for no others.
func (a *awaited) expect(all sources) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = nil
	for _, one := range all {
		if one.upstream != nil {
			a.all = append(a.all, one)
		}
	}
	a.look()
}

// hear notes that a source has said something, or that it is no longer waited
// for.
func (a *awaited) hear(set *source.Set) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || set.Awaited {
		return
	}
	a.heard[set.Source] = set
	a.look()
}

func (a *awaited) look() {
	if !a.ended && len(a.left()) == 0 {
		a.ended = true
		close(a.over)
	}
}

// left are the names of those that have not said anything, or not of all that
// clusters of other sources take from them.
func (a *awaited) left() (names []string) {
	for _, one := range a.all {
		if a.heard[one.name] == nil || one.upstream.Pending() {
			names = append(names, one.name)
		}
	}
	return names
}

// unread are the names of those that were given up.
func (a *awaited) unread() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if heard := a.heard[one.name]; heard != nil && heard.Unread {
			names = append(names, one.name)
		}
	}
	return names
}

// String says who is waited for; it is empty when nobody is.
func (a *awaited) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.left()
	if a.ended || len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("waiting for the sources %s, no longer than their initial_fetch_timeout", strings.Join(left, ", "))
}

// untilEnd waits for the end, or for a failure. Meanwhile hdsd gets ready.
func (c *Coordinator) untilEnd(failures <-chan error) error {
	if who := c.awaited.String(); who != "" {
		c.log.Info().Str("event", "sources_awaited").Msg("not ready yet: " + who)
	}
	for over := c.awaited.over; ; {
		select {
		case <-over:
			over = nil
			c.complete()
		case <-c.running.Done():
			return nil
		case err := <-failures:
			return err
		}
	}
}

// complete has everyone told what is not there. What the sources said has been
// posted before.
func (c *Coordinator) complete() {
	c.core.post(c.eds.Complete)
	c.readiness(true)
	if unread := c.awaited.unread(); len(unread) > 0 {
		c.log.Warn().Str("event", "sources_unread").Strs("sources", unread).
			Msg("ready, though these sources have not answered: what they said before the start stays in use, as far as it is known")
	}
}
