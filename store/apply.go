package store

import (
	"hdsd/health"
	"hdsd/log"
)

// Apply adds an entry of the log: its transitions to the history, and everything else to the
// state. One transaction has the whole of it, but for transitions beyond the size of a group. It does not wait for
// the disk; Flush does. The entry must not change afterwards. A database with a fleet diverges.
func (s *Store) Apply(e *log.Entry) {
	s.intake.whole.Lock()
	defer s.intake.whole.Unlock()
	s.diverge()
	s.applyFirst(s.intake, e)
	if len(e.Transitions) > 0 {
		s.Append(e.Transitions)
	}
	s.intake.applyRows(e)
}

// applyFirst adds the parts of an entry that precede its transitions.
func (s *Store) applyFirst(in *intake, e *log.Entry) {
	in.applyOperators(e)
	if len(e.Clusters) > 0 {
		s.rememberIn(in, e.Clusters)
	}
	if len(e.Voted) > 0 {
		in.saveVoted(e.Voted)
	}
}

// applyOperators adds what operators decided.
func (in *intake) applyOperators(e *log.Entry) {
	if e.Freeze != nil {
		in.saveFreeze(e.Freeze.After)
	}
	if e.Held != nil {
		in.saveFreeze(e.Held)
	}
	if len(e.Overrides) > 0 {
		changed := make(map[health.Endpoint]*log.Override, len(e.Overrides))
		for i := range e.Overrides {
			o := &e.Overrides[i]
			if changed[o.Override.Scope] = nil; o.Kind == log.Set {
				changed[o.Override.Scope] = &o.Override
			}
		}
		in.saveOverrides(changed)
	}
	if e.Trust != nil {
		in.saveTrust(e.Trust.Checker, e.Trust.After)
	}
}

// applyRows adds the parts of an entry that follow its transitions.
func (in *intake) applyRows(e *log.Entry) {
	if len(e.Unvoted) > 0 {
		forgotten := make(map[health.Hash]*health.Verdict, len(e.Unvoted))
		for _, hash := range e.Unvoted {
			forgotten[hash] = nil
		}
		in.saveVoted(forgotten)
	}
	in.saveTakeovers(e)
	if len(e.Plan) > 0 {
		in.savePlan(e.Plan)
	}
	if len(e.Established) > 0 {
		in.saveEstablished(e.Established)
	}
	if len(e.Trials) > 0 {
		in.saveTrials(e.Trials)
	}
	if len(e.Penalties) > 0 {
		in.savePenalties(e.Penalties)
	}
}
