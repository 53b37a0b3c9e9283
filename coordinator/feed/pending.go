package feed

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"hdsd/source"
)

// pending tracks the management servers that have not answered since hdsd's start,
// or not about the assignments that clusters of other sources need. Until none is
// left, nobody is told that something does not exist.
type pending struct {
	over       chan struct{}   // closed for good when none is left
	unresolved func() []string // sources with names that were never resolved so far; nil: none

	mu    sync.Mutex // guards what follows
	all   sources    // management servers
	heard map[string]*source.Set
	ended bool
}

func newPending() *pending {
	return &pending{over: make(chan struct{}), heard: map[string]*source.Set{}}
}

// expect waits for the management servers among the sources, and for no others.
func (p *pending) expect(all sources) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = nil
	for _, one := range all {
		if one.upstream != nil {
			p.all = append(p.all, one)
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

// look sees whether names were resolved.
func (p *pending) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check()
}

func (p *pending) check() {
	if !p.ended && len(p.left()) == 0 {
		p.ended = true
		close(p.over)
	}
}

// left lists the servers that have not answered, and the sources whose names have not
// been resolved.
func (p *pending) left() (names []string) {
	for _, one := range p.all {
		if p.heard[one.name] == nil || one.upstream.Pending() {
			names = append(names, one.name)
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
	for _, one := range p.all {
		if heard := p.heard[one.name]; heard != nil && heard.Unread {
			names = append(names, one.name)
		}
	}
	return names
}

// String says which servers have yet to answer; it is empty if all have.
func (p *pending) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left()
	if p.ended || len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("waiting for the sources %s, no longer than their initial_fetch_timeout", strings.Join(left, ", "))
}
