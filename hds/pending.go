package hds

import (
	"sync"
	"time"

	"hdsd/envoy/specifier"
)

// pending is the specifier waiting to be sent. The latest wins.
type pending struct {
	wake chan struct{} // holds one signal: there is something to send

	mu      sync.Mutex
	spec    *specifier.Specifier // nil when removed
	skipped bool                 // an earlier one was replaced before it was sent
	lagging bool                 // the latest assignment is not in force yet

	// Owned by the goroutine that sends.
	retell    bool      // the next plan repeats every vote
	inForceAt time.Time // time when the last plan came into force
}

func newPending() pending { return pending{wake: make(chan struct{}, 1)} }

// set replaces the waiting specifier. Nil withdraws it.
func (p *pending) set(spec *specifier.Specifier) {
	p.mu.Lock()
	p.skipped = p.skipped || p.spec != nil
	p.spec, p.lagging = spec, spec != nil
	p.mu.Unlock()
	p.rouse()
}

// rouse wakes the goroutine that sends.
func (p *pending) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // the woken goroutine finds all there is
	}
}

// peek returns the waiting specifier, or nil.
func (p *pending) peek() *specifier.Specifier {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spec
}

// remove removes the waiting specifier, unless it has been replaced. If an earlier one was never
// sent, its sender counts on every vote being repeated.
func (p *pending) remove(spec *specifier.Specifier) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if spec == nil || p.spec != spec {
		return false
	}
	p.spec = nil
	p.retell, p.skipped = p.retell || p.skipped, false
	return true
}

// inForce records that the removed specifier is in force.
func (p *pending) inForce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lagging = p.spec != nil
}

func (p *pending) isBehind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lagging
}
