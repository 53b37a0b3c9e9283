package hds

import (
	"slices"
	"sync/atomic"

	"hdsd/hds/specifier"
)

// progress is what a checker was sent, and how far its reports follow. The
// goroutine that sends adds plans, the one that receives matches reports; any
// goroutine may ask.
type progress struct {
	plans    atomic.Pointer[plans] // the goroutine that sends adds to them, the one that receives trims them
	sent     atomic.Pointer[sent]  // the last message; written by the goroutine that sends
	partial  atomic.Bool           // that message leaves out clusters that have no v2 form
	accepted atomic.Uint64         // seq of the newest plan matched; written by the goroutine that receives
	follows  atomic.Bool           // a report has listed something that was sent
	strange  atomic.Uint64         // entries that are no votes
}

// sentPlans gives the plans that a report may follow.
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
	next := before.with(newPlan(seq, spec), p.accepted.Load())
	p.plans.Store(&next)
	return true
}

// bringsBack reports whether a specifier lists an endpoint that the last one dropped, while a
// report may still follow an earlier one that listed it.
func (p *progress) bringsBack(spec *specifier.Specifier) bool {
	gone := p.sentPlans().from(p.accepted.Load()).gone()
	if len(gone) == 0 {
		return false
	}
	for e := range newPlan(0, spec).places() {
		if gone[e] {
			return true
		}
	}
	return false
}

// match records which of some plans a report follows, and what it says. It gives the plan that
// the checker accepts by it, nil if it accepts none anew.
func (p *progress) match(in plans, got *reading) (accepted *plan) {
	if got.matched > p.accepted.Load() {
		accepted = in.numbered(got.matched)
	}
	p.accepted.Store(got.matched)
	if now := p.plans.Load(); now != nil && (*now)[0].seq < got.matched {
		rest := now.from(got.matched)
		p.plans.CompareAndSwap(now, &rest) // else there is a newer list, which the next report trims
	}
	p.strange.Add(got.strange)
	if got.follows || len(got.votes) > 0 {
		p.follows.Store(true)
	}
	return accepted
}

// isCurrent reports whether a report has matched the newest plan.
func (p *progress) isCurrent() bool {
	current := p.sentPlans().current()
	return current != nil && p.accepted.Load() >= current.seq
}

// specifier gives State.Specifier of a checker that was sent all that was
// assigned, or not.
func (p *progress) specifier(behind bool) string {
	switch {
	case behind || p.partial.Load() || p.plans.Load() == nil:
		return NotSent
	case p.isCurrent():
		return Synced
	}
	return Sent
}
