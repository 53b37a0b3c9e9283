package hds

import (
	"slices"
	"sync/atomic"

	"hdsd/envoy/specifier"
)

// progress is the state of a checker's specifiers, and how far its reports follow. The goroutine
// that sends adds plans, the one that receives matches reports; any goroutine may read.
type progress struct {
	plans    atomic.Pointer[plans]       // the goroutine that sends adds to them, the one that receives trims them
	sent     atomic.Pointer[sentMessage] // the last message; written by the goroutine that sends
	partial  atomic.Bool                 // that message omits clusters that have no v2 form
	accepted atomic.Uint64               // seq of the newest plan matched; written by the goroutine that receives
	follows  atomic.Bool                 // a report has listed something that was sent
	strange  atomic.Uint64               // entries that are no votes
}

// sentPlans returns the plans that a report may follow.
func (p *progress) sentPlans() plans {
	if sent := p.plans.Load(); sent != nil {
		return *sent
	}
	return nil
}

// announce puts the plan of a specifier in force. It reports whether the plan
// differs from the one before; retell makes it differ.
func (p *progress) announce(spec *specifier.Specifier, retell bool) bool {
	before, seq := p.sentPlans(), uint64(1)
	if current := before.current(); current != nil {
		if !retell && slices.Equal(current.order, spec.Order) {
			return false
		}
		seq = current.seq + 1
	}
	next := before.add(newPlan(seq, spec), p.accepted.Load())
	p.plans.Store(&next)
	return true
}

// bringsBack reports whether a specifier lists an endpoint that the last one dropped, while a
// report may still follow an earlier one that listed it.
func (p *progress) bringsBack(spec *specifier.Specifier) bool {
	removed := p.sentPlans().tail(p.accepted.Load()).removed()
	if len(removed) == 0 {
		return false
	}
	for e := range newPlan(0, spec).places() {
		if removed[e] {
			return true
		}
	}
	return false
}

// match records the plan among candidates that a report follows, and its content. It returns the
// plan that the checker newly accepts, or nil.
func (p *progress) match(candidates plans, result *reading) (accepted *plan) {
	if result.matched > p.accepted.Load() {
		accepted = candidates.numbered(result.matched)
	}
	p.accepted.Store(result.matched)
	if now := p.plans.Load(); now != nil && (*now)[0].seq < result.matched {
		rest := now.tail(result.matched)
		p.plans.CompareAndSwap(now, &rest) // else there is a newer list, which the next report trims
	}
	p.strange.Add(result.strange)
	if result.follows || len(result.votes) > 0 {
		p.follows.Store(true)
	}
	return accepted
}

// isCurrent reports whether a report has matched the newest plan.
func (p *progress) isCurrent() bool {
	current := p.sentPlans().current()
	return current != nil && p.accepted.Load() >= current.seq
}

// specifier returns State.Specifier of a checker, given whether its assignment is lagging.
func (p *progress) specifier(lagging bool) string {
	switch {
	case lagging || p.partial.Load() || p.plans.Load() == nil:
		return NotSent
	case p.isCurrent():
		return Synced
	}
	return Sent
}
