package machine

import (
	"errors"
	"fmt"

	"hdsd/aggregate"
	"hdsd/log"
)

// MaxTrust limits the checkers that operators trust or distrust.
const MaxTrust = 10_000

// ErrTrustFull reports that operators trust or distrust MaxTrust checkers.
var ErrTrustFull = errors.New("operators trust or distrust the most checkers allowed")

// Trust holds the trust of operators in checkers, by id.
type Trust map[string]log.Trust

// Get returns the trust of an operator in a checker; nil if trust is automatic.
func (t Trust) Get(checker string) *log.Trust {
	if trust, ok := t[checker]; ok {
		return &trust
	}
	return nil
}

// set sets the trust of an operator in a checker.
func (t Trust) set(checker string, trust *log.Trust) (change log.TrustChange, err error) {
	before := t.Get(checker)
	if before == nil && len(t) >= MaxTrust {
		return change, ErrTrustFull
	}
	t[checker] = *trust
	return log.TrustChange{Checker: checker, Before: before, After: trust, By: trust.Author}, nil
}

// clear returns a checker to automatic trust, and reports whether its trust was set.
func (t Trust) clear(checker, author string) (change log.TrustChange, changed bool) {
	before := t.Get(checker)
	delete(t, checker)
	return log.TrustChange{Checker: checker, Before: before, By: author}, before != nil
}

// Distrusted returns the number of distrusted checkers.
func (t Trust) Distrusted() (count int) {
	for _, trust := range t {
		if trust.Level == log.Distrusted {
			count++
		}
	}
	return count
}

// applyTrust applies a change of trust to the votes of a checker, and logs it.
func (m *Machine) applyTrust(change log.TrustChange) {
	m.setAggregatorTrust(change.Checker)
	m.yield(Logged{&log.Entry{Trust: &change}})
}

// setAggregatorTrust passes the trust of an operator in a checker to the aggregator.
func (m *Machine) setAggregatorTrust(checker string) {
	trust := m.Trust[checker]
	levels := map[log.TrustLevel]aggregate.OperatorTrust{log.Distrusted: aggregate.Distrusted, log.Trusted: aggregate.Trusted}
	m.Aggregator.SetTrust(checker, levels[trust.Level], fmt.Sprintf("%s (%s)", trust.Reason, trust.Author))
	m.Fleet.Reconsider()
}
