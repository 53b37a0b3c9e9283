package machine

import (
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/ruling"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// Event is what a Machine takes in at a time. Events are values: the same ones at the same times lead
// another Machine, which began with the same, to the same effects.
type Event interface {
	handle(m *Machine, now time.Time)
}

// What sources and the process tell.
type (
	// Begun starts the time to settle, when the servers listen.
	Begun struct{}

	// Delivered is a change of the clusters.
	Delivered struct{ catalog.Delivery }

	// Answered says that every source has answered, or was given up.
	Answered struct{}

	// Tick lets each room do what is due.
	Tick struct {
		Heard time.Time // when the latest event was posted that was handled, if others wait; zero: none does
	}
)

// What checkers do.
type (
	// Connected is a checker that opens a stream, or begins to fetch.
	Connected struct{ Checker health.Checker }
	// Disconnected is the end of the last stream of a checker.
	Disconnected struct{ Checker string }
	// Reported is a report of a checker, or a part of it.
	Reported struct {
		Checker string
		Votes   []health.Vote // those that have changed
	}
	// StreamEnded is the end of a stream whose checker may have another one.
	StreamEnded struct{ Checker string }
	// Silenced says that a connected checker is silent, or reports after all.
	Silenced struct {
		Checker string
		Silent  bool
	}
	// Followed says that a checker follows a specifier, and may be sent the next.
	Followed struct {
		Checker   string
		Specifier *specifier.Specifier
	}
)

// What operators order. Step fills in the outcome.
type (
	// SetOverride replaces the verdict of an endpoint, or of all in a scope.
	SetOverride struct {
		Override store.Override

		Set      ruling.Override
		Replaced *ruling.Override // nil: none
		Err      error
	}
	// ClearOverrides ends overrides.
	ClearOverrides struct {
		Scope  health.Endpoint
		All    bool // also those within the scope
		Author string

		Ended []ruling.Override
		Err   error
	}
	// Freeze stops the publication of new verdicts.
	Freeze struct {
		Author, Reason string
		Hold           bool // also what overrides and sources change

		Before, After *store.Freeze
	}
	// Unfreeze ends a freeze.
	Unfreeze struct {
		Author string

		Before *store.Freeze // nil: it was not frozen
	}
	// SetTrust has an operator trust or distrust a checker.
	SetTrust struct {
		Checker string
		Trust   store.Trust

		Change decision.TrustChange
		Err    error // ErrTrustFull
	}
	// ClearTrust returns a checker to automatic trust.
	ClearTrust struct {
		Checker, Author string

		Change  decision.TrustChange
		Changed bool
	}
)

func (Begun) handle(m *Machine, now time.Time) {
	m.Troubles.begin(now)
	m.restoreLost(now)
	m.Fleet.Begin(now)
	m.applyRulings(now, m.Rulings.Start(now))
}

func (e Delivered) handle(m *Machine, now time.Time) { m.apply(now, &e.Delivery) }

func (Answered) handle(m *Machine, _ time.Time) { m.yield(SourcesAnswered{}) }

func (e Connected) handle(m *Machine, now time.Time) {
	effects := m.Fleet.Connect(now, e.Checker) // first, since the rollout asks who is a newcomer
	m.Rollout.Connect(now, &e.Checker)
	m.Troubles.back(e.Checker)
	if !m.Fleet.OnProbation(e.Checker.ID) {
		m.replace(now, e.Checker.ID)
	}
	m.yield(Joined(e))
	m.applyFleet(now, effects)
}

func (e StreamEnded) handle(m *Machine, _ time.Time) { m.Rollout.Ended(e.Checker) }

// The seats of a checker that is lost are kept.
func (e Disconnected) handle(m *Machine, now time.Time) {
	m.Rollout.Disconnect(now, e.Checker)
	m.applyFleet(now, m.Fleet.Disconnect(now, e.Checker))
	m.Troubles.gone(e.Checker)
}

func (e Followed) handle(m *Machine, now time.Time) {
	m.Rollout.Accepted(now, e.Checker, e.Specifier)
	m.want(now)
}

func (e Silenced) handle(m *Machine, now time.Time) {
	m.applyFleet(now, m.Fleet.SetSilent(now, e.Checker, e.Silent))
}

func (e Reported) handle(m *Machine, now time.Time) { m.report(now, e.Checker, e.Votes) }

func (e *SetOverride) handle(m *Machine, now time.Time) {
	var effects ruling.Effects
	e.Set, e.Replaced, effects, e.Err = m.Rulings.SetOverride(now, e.Override)
	m.applyRulings(now, effects)
}

func (e *ClearOverrides) handle(m *Machine, now time.Time) {
	var effects ruling.Effects
	e.Ended, effects, e.Err = m.Rulings.ClearOverrides(now, e.Scope, e.All, e.Author)
	m.applyRulings(now, effects)
}

func (e *Freeze) handle(m *Machine, now time.Time) {
	var effects ruling.Effects
	e.Before, e.After, effects = m.Rulings.Freeze(now, e.Author, e.Reason, e.Hold)
	m.applyRulings(now, effects)
}

func (e *Unfreeze) handle(m *Machine, now time.Time) {
	var effects ruling.Effects
	e.Before, effects = m.Rulings.Unfreeze(e.Author)
	m.applyRulings(now, effects)
}

func (e *SetTrust) handle(m *Machine, now time.Time) {
	e.Trust.Since = now.UTC().Round(0)
	if e.Change, e.Err = m.Trust.set(e.Checker, &e.Trust); e.Err == nil {
		m.applyTrust(e.Change)
	}
}

func (e *ClearTrust) handle(m *Machine, _ time.Time) {
	if e.Change, e.Changed = m.Trust.clear(e.Checker, e.Author); e.Changed {
		m.applyTrust(e.Change)
	}
}
