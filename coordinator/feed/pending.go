package feed

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"hdsd/source"
)

// pending tracks the management servers that have not answered since hdsd's start, or not about
// the assignments that clusters of other sources need. Until none is left, hdsd never says that
// something does not exist.
type pending struct {
	done       chan struct{}   // closed for good when none is left
	unresolved func() []string // sources with names that were never resolved so far; nil: none

	mu      sync.Mutex // guards what follows
	servers sources    // management servers
	heard   map[string]*source.Set
	ended   bool
}

func newPending() *pending {
	return &pending{done: make(chan struct{}), heard: map[string]*source.Set{}}
}

// expect waits for the management servers among the sources, and for no others.
func (p *pending) expect(sources sources) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = nil
	for _, o := range sources {
		if o.upstream != nil {
			p.servers = append(p.servers, o)
		}
	}
	p.check()
}

// hear notes that a source has answered or was given up.
func (p *pending) hear(set *source.Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || set.Awaited {
		return
	}
	p.heard[set.Source] = set
	p.check()
}

// look checks whether names were resolved.
func (p *pending) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check()
}

func (p *pending) check() {
	if !p.ended && len(p.unanswered()) == 0 {
		p.ended = true
		close(p.done)
	}
}

// unanswered lists the servers that have not answered, and the sources whose names have not
// been resolved.
func (p *pending) unanswered() (names []string) {
	for _, o := range p.servers {
		if p.heard[o.name] == nil || o.upstream.Pending() {
			names = append(names, o.name)
		}
	}
	if p.unresolved == nil {
		return names
	}
	for _, name := range p.unresolved() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// givenUp lists the servers that did not answer in time.
func (p *pending) givenUp() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.servers {
		if heard := p.heard[o.name]; heard != nil && heard.Unread {
			names = append(names, o.name)
		}
	}
	return names
}

// String lists the servers that have yet to answer; it is empty if all have.
func (p *pending) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	unanswered := p.unanswered()
	if p.ended || len(unanswered) == 0 {
		return ""
	}
	return fmt.Sprintf("waiting for the sources %s, no longer than their initial_fetch_timeout", strings.Join(unanswered, ", "))
}
