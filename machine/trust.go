package machine

import (
	"errors"
	"fmt"

	"hdsd/aggregate"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// MaxTrust is how many checkers operators can trust or distrust.
const MaxTrust = 10_000

// ErrTrustFull says that operators trust or distrust as many checkers as they can.
var ErrTrustFull = errors.New("operators trust or distrust the most checkers allowed")

// Trust holds what operators say of checkers.
type Trust map[string]store.Trust

// Of returns what an operator says of a checker, or nil.
func (t Trust) Of(checker string) *store.Trust {
	if trust, ok := t[checker]; ok {
		return &trust
	}
	return nil
}

// set sets what an operator says of a checker.
func (t Trust) set(checker string, trust *store.Trust) (change decision.TrustChange, err error) {
	before := t.Of(checker)
	if before == nil && len(t) >= MaxTrust {
		return change, ErrTrustFull
	}
	t[checker] = *trust
	return decision.TrustChange{Checker: checker, Before: before, After: trust, By: trust.Author}, nil
}

// clear returns a checker to automatic trust, and reports whether that changes anything.
func (t Trust) clear(checker, author string) (change decision.TrustChange, changed bool) {
	before := t.Of(checker)
	delete(t, checker)
	return decision.TrustChange{Checker: checker, Before: before, By: author}, before != nil
}

// Distrusted returns how many checkers operators distrust.
func (t Trust) Distrusted() (count int) {
	for _, trust := range t {
		if trust.Level == store.Distrusted {
			count++
		}
	}
	return count
}

// applyTrust makes the votes of a checker count as an operator says, and records that.
func (m *Machine) applyTrust(change decision.TrustChange) {
	m.instruct(change.Checker)
	m.yield(Decided{&decision.Decision{Trust: &change}})
}

// instruct tells the aggregator what an operator says of a checker.
func (m *Machine) instruct(checker string) {
	trust := m.Trust[checker]
	levels := map[store.TrustLevel]aggregate.OperatorTrust{store.Distrusted: aggregate.Distrusted, store.Trusted: aggregate.Trusted}
	m.Judge.SetTrust(checker, levels[trust.Level], fmt.Sprintf("%s (%s)", trust.Reason, trust.Author))
	m.Fleet.Reconsider()
}
