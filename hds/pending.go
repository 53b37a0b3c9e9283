package hds

import (
	"sync"
	"time"

	"hdsd/hds/specifier"
)

// pending is the specifier that waits to be sent. The latest wins.
type pending struct {
	wake chan struct{} // holds one: there is something to send

	mu      sync.Mutex
	spec    *specifier.Specifier // nil when taken
	skipped bool                 // an earlier one was replaced before it was sent
	behind  bool                 // the one assigned last is not in force yet

	// Owned by the goroutine that sends.
	retell    bool      // the next plan has every vote told again
	inForceAt time.Time // when the last plan came into force
}

func newPending() pending { return pending{wake: make(chan struct{}, 1)} }

// set replaces what waits. Nil withdraws it.
func (p *pending) set(spec *specifier.Specifier) {
	p.mu.Lock()
	p.skipped = p.skipped || p.spec != nil
	p.spec, p.behind = spec, spec != nil
	p.mu.Unlock()
	p.rouse()
}

// rouse wakes the goroutine that sends.
func (p *pending) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // whoever is woken finds all there is
	}
}

// peek gives what waits, nil if nothing does.
func (p *pending) peek() *specifier.Specifier {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spec
}

// take takes what waits, unless that is another one by now. If one before it was never
// sent, whoever assigned it counts on every vote being told again.
func (p *pending) take(spec *specifier.Specifier) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if spec == nil || p.spec != spec {
		return false
	}
	p.spec = nil
	p.retell, p.skipped = p.retell || p.skipped, false
	return true
}

// inForce notes that what was taken is in force.
func (p *pending) inForce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = p.spec != nil
}

func (p *pending) isBehind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behind
}
