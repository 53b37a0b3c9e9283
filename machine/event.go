package machine

import (
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/log"
	"hdsd/ruling"
)

// Event is an input of a Machine. Events are values: two machines with the same state that handle the same
// events at the same times yield the same effects.
type Event interface {
	handle(m *Machine, now time.Time)
}

// These events come from sources and from the process.
type (
	// Begun reports that the servers listen. It starts the time to settle.
	Begun struct{}

	// Delivered carries a change of the clusters.
	Delivered struct{ catalog.Delivery }

	// Answered reports that each source has answered, or that hdsd has given it up.
	Answered struct{}

	// Tick lets each room do its due work.
	Tick struct {
		ReceivedUntil time.Time // the machine has handled all events that were posted until then; zero: all events
	}
)

// These events come from checkers.
type (
	// Connected reports that a checker opens a stream, or begins to fetch.
	Connected struct{ Checker health.Checker }
	// Disconnected reports the end of the last stream of a checker.
	Disconnected struct{ Checker string }
	// Reported carries a report of a checker, or a part of one.
	Reported struct {
		Checker string
		Votes   []health.Vote // changed votes only
	}
	// StreamEnded reports the end of a stream. The checker may have another stream.
	StreamEnded struct{ Checker string }
	// Silenced reports that a connected checker falls silent, or reports again.
	Silenced struct {
		Checker string
		Silent  bool
	}
	// Followed reports that a checker follows a specifier, and may get the next one.
	Followed struct {
		Checker   string
		Specifier *specifier.Specifier
	}
)

// These events are orders of operators. Step sets the fields after the empty line.
type (
	// SetOverride replaces the verdicts of the endpoints in a scope.
	SetOverride struct {
		Override log.Override

		Applied  ruling.Override
		Replaced *ruling.Override // nil: none
		Err      error
	}
	// ClearOverrides ends overrides.
	ClearOverrides struct {
		Scope  health.Endpoint
		All    bool // including narrower overrides within the scope
		Author string

		Ended []ruling.Override
		Err   error
	}
	// Freeze stops publishing new verdicts.
	Freeze struct {
		Author, Reason string
		Hold           bool // holds the verdicts of the beginning, instead of the health of the sources

		Before, After *log.Freeze
	}
	// Unfreeze ends a freeze.
	Unfreeze struct {
		Author string

		Before *log.Freeze // nil: publishing was not frozen
	}
	// SetTrust makes a checker trusted or distrusted.
	SetTrust struct {
		Checker string
		Trust   log.Trust

		Change log.TrustChange
		Err    error // ErrTrustFull
	}
	// ClearTrust returns a checker to automatic trust.
	ClearTrust struct {
		Checker, Author string

		Change  log.TrustChange
		Changed bool
	}
	// Annotate adds an event to the history.
	Annotate struct{ Event log.Event }
)

func (Begun) handle(m *Machine, now time.Time) {
	m.Troubles.begin(now)
	m.restoreLost(now)
	m.Fleet.Begin(now)
	m.applyRulings(now, m.Rulings.Start(now))
}

func (e Delivered) handle(m *Machine, now time.Time) { m.applyDelivery(now, &e.Delivery) }

func (Answered) handle(m *Machine, _ time.Time) { m.yield(SourcesAnswered{}) }

func (e Connected) handle(m *Machine, now time.Time) {
	effects := m.Fleet.Connect(now, e.Checker) // before the rollout, which asks whether the checker is on probation
	m.Rollout.Connect(now, &e.Checker)
	m.Troubles.connect(e.Checker)
	if !m.Fleet.OnProbation(e.Checker.ID) {
		m.replaceLost(now, e.Checker.ID)
	}
	m.yield(CheckerJoined(e))
	m.applyFleet(now, effects)
}

func (e StreamEnded) handle(m *Machine, _ time.Time) { m.Rollout.Ended(e.Checker) }

// handle ends the connection of a checker. The checker is lost, and keeps its seats.
func (e Disconnected) handle(m *Machine, now time.Time) {
	m.Rollout.Disconnect(now, e.Checker)
	m.applyFleet(now, m.Fleet.Disconnect(now, e.Checker))
	m.Troubles.disconnect(e.Checker)
}

func (e Followed) handle(m *Machine, now time.Time) {
	m.Rollout.Accepted(now, e.Checker, e.Specifier)
	m.sendSpecifiers(now)
}

func (e Silenced) handle(m *Machine, now time.Time) {
	m.applyFleet(now, m.Fleet.SetSilent(now, e.Checker, e.Silent))
}

func (e Reported) handle(m *Machine, now time.Time) { m.report(now, e.Checker, e.Votes) }

func (e *SetOverride) handle(m *Machine, now time.Time) {
	var effects ruling.Effects
	e.Applied, e.Replaced, effects, e.Err = m.Rulings.SetOverride(now, e.Override)
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

func (e *Annotate) handle(m *Machine, _ time.Time) {
	m.yield(Logged{&log.Entry{Events: []log.Event{e.Event}}})
}
