package log

import (
	"slices"

	"hdsd/health"
)

// Apply applies the next entry, as the store does.
func (s *State) Apply(e *Entry) {
	s.applyOrders(e)
	for _, name := range e.Clusters {
		s.addCluster(name)
	}
	for hash, v := range e.Voted {
		s.setVoted(hash, v)
	}
	for i := range e.Transitions {
		t := &e.Transitions[i]
		s.addCluster(t.Endpoint.Cluster)
		set(&s.Current, t.Endpoint.Hash(), &Health{Endpoint: t.Endpoint, Status: t.To, Since: t.Time, Reason: t.Reason})
	}
	for _, hash := range e.Unvoted {
		delete(s.Voted, hash)
	}
	member := true
	s.setTakeover(e.TakenOver, &member, nil)
	s.setTakeover(e.Removed, nil, nil)
	s.setTakeover(e.GivenBack, nil, &member)
	s.applyRows(e)
	s.attend(e.Events)
}

// attend applies the events of checkers that joined or were lost.
func (s *State) attend(events []Event) {
	if s.Attendance == nil && len(events) > 0 {
		s.Attendance = Attendance{}
	}
	for i := range events {
		s.Attendance.Add(&events[i])
	}
}

// setTakeover makes clusters members of TakenOver or GivenBack; nil removes them.
func (s *State) setTakeover(names []string, takenOver, givenBack *bool) {
	for _, name := range names {
		set(&s.TakenOver, name, takenOver)
		set(&s.GivenBack, name, givenBack)
	}
}

// applyOrders applies the orders of operators.
func (s *State) applyOrders(e *Entry) {
	if e.Freeze != nil {
		s.Freeze = e.Freeze.After
	}
	if e.Held != nil {
		s.Freeze = e.Held
	}
	for i := range e.Overrides {
		c := &e.Overrides[i]
		s.Overrides = slices.DeleteFunc(s.Overrides, func(o Override) bool { return o.Scope == c.Override.Scope })
		if c.Kind == Set {
			s.Overrides = append(s.Overrides, c.Override)
		}
	}
	if e.Trust != nil {
		set(&s.Trust, e.Trust.Checker, e.Trust.After)
	}
}

// applyRows applies the rows for a restart.
func (s *State) applyRows(e *Entry) {
	for checker, hashes := range e.Plan {
		if hashes == nil {
			delete(s.Plan, checker)
			continue
		}
		sorted := slices.Sorted(slices.Values(hashes))
		set(&s.Plan, checker, &sorted)
	}
	for checker, row := range e.Established {
		set(&s.Established, checker, row)
	}
	for name, row := range e.Trials {
		if row == nil {
			delete(s.Trials, name)
		} else {
			set(&s.Trials, name, &row)
		}
	}
	for hash, row := range e.Penalties {
		set(&s.Penalties, hash, row)
	}
}

func (s *State) addCluster(name string) {
	if i, known := slices.BinarySearch(s.Clusters, name); !known {
		s.Clusters = slices.Insert(s.Clusters, i, name)
	}
}

// setVoted sets the status of a verdict of the votes; nil removes it.
func (s *State) setVoted(hash health.Hash, v *health.Verdict) {
	if v != nil {
		v = &health.Verdict{Status: v.Status, Since: v.Since}
	}
	set(&s.Voted, hash, v)
}

// set sets a row, or removes it if it is nil.
func set[K comparable, V any](rows *map[K]V, key K, row *V) {
	switch {
	case row == nil:
		delete(*rows, key)
	case *rows == nil:
		*rows = map[K]V{key: *row}
	default:
		(*rows)[key] = *row
	}
}
