package check

import "hdsd/health"

// Outcome is the result of one probe.
type Outcome uint8

// The outcomes.
const (
	Passed         Outcome = iota
	Degraded               // passed, but degraded
	Failed                 // a failing response
	Retriable              // a failing response with a retriable status
	NetworkFailure         // no connection, a broken one, or an invalid response
	TimedOut               // no response in time
)

// State is the state of one health check of one endpoint. NewState makes the first one.
type State struct {
	probed   bool // a probe has ended
	failed   bool
	timedOut bool // the latest failure was a timeout; only while failed
	degraded bool

	passes   uint32 // in a row, while failed
	failures uint32 // in a row, while not failed
}

// NewState returns the state before the first probe. A new endpoint has failed. An
// endpoint with a new health check keeps its health until that check's first probe
// ends.
func NewState(before health.Status) State {
	return State{failed: before != health.Healthy, timedOut: before == health.Timeout}
}

// Apply returns the state after a probe. pending reports that the outcome differs from
// the state, but a threshold is not reached.
func (s State) Apply(p *Policy, o Outcome) (next State, pending bool) {
	if o == Passed || o == Degraded {
		next, pending = s.passed(p)
		next.degraded = o == Degraded
	} else {
		next, pending = s.notPassed(p, o)
	}
	next.probed = true
	return next, pending
}

func (s State) passed(p *Policy) (State, bool) {
	s.failures = 0
	if !s.failed {
		return s, false
	}
	s.passes++
	if s.probed && s.passes != p.HealthyThreshold {
		return s, true
	}
	s.failed, s.timedOut, s.passes = false, false, 0
	return s, false
}

func (s State) notPassed(p *Policy, o Outcome) (State, bool) {
	s.passes = 0
	pending := false
	if !s.failed {
		s.failures++
		s.failed = o == Failed || s.failures == p.UnhealthyThreshold
		pending = !s.failed
	}
	s.timedOut = s.failed && o == TimedOut
	return s, pending
}

// Status returns the status for a report: HEALTHY, UNHEALTHY or TIMEOUT.
func (s State) Status() health.Status {
	switch {
	case s.failed && s.timedOut:
		return health.Timeout
	case s.failed || s.degraded:
		return health.Unhealthy
	default:
		return health.Healthy
	}
}
