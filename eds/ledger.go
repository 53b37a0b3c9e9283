package eds

import (
	"slices"

	"hdsd/health"
	"hdsd/publish"
)

// ledger knows the health of every endpoint and which assignments have it.
type ledger struct {
	health      publish.Statuses
	assignments map[string]*entry
	// first and additional list the places of each endpoint id. Nearly every id has one place,
	// so the first is separate.
	first      []place
	additional map[health.EndpointID][]place
	// zones has the zones' own views of health.
	zones map[health.Locality]map[health.EndpointID]health.Status
}

// entry is a published assignment.
type entry struct {
	slot      *slot
	endpoints decided
	touched   bool // during set: its slot has changed
}

// place is an lb endpoint in an assignment; none if entry is nil.
type place struct {
	entry *entry
	index int
}

func newLedger() ledger {
	return ledger{assignments: make(map[string]*entry), additional: make(map[health.EndpointID][]place)}
}

// put replaces the assignment of a name.
func (l *ledger) put(name string, s *slot, endpoints decided) {
	l.remove(name)
	e := &entry{slot: s, endpoints: endpoints}
	l.assignments[name] = e
	for i := range endpoints.len() {
		for _, id := range endpoints.ids(i) {
			l.add(id, place{e, i})
		}
	}
}

func (l *ledger) remove(name string) {
	e := l.assignments[name]
	if e == nil {
		return
	}
	delete(l.assignments, name)
	for i := range e.endpoints.len() {
		for _, id := range e.endpoints.ids(i) {
			l.drop(id, e)
		}
	}
}

func (l *ledger) add(id health.EndpointID, p place) {
	l.first = grow(l.first, id)
	if l.first[id].entry == nil {
		l.first[id] = p
		return
	}
	l.additional[id] = append(l.additional[id], p)
}

func (l *ledger) drop(id health.EndpointID, e *entry) {
	rest := slices.DeleteFunc(l.additional[id], func(p place) bool { return p.entry == e })
	if l.first[id].entry == e {
		l.first[id] = place{}
		if len(rest) > 0 {
			l.first[id], rest = rest[0], rest[1:]
		}
	}
	if len(rest) > 0 {
		l.additional[id] = rest
	} else {
		delete(l.additional, id)
	}
}

// set changes the health of endpoints and returns the changed slots. It calls visit with every
// place of the endpoints, and whether its health has changed.
func (l *ledger) set(changes []publish.Health, visit func(p place, changed bool)) []*slot {
	var touched []*entry
	for _, c := range changes {
		if !l.health.Set(c) {
			continue
		}
		if int(c.ID) >= len(l.first) || l.first[c.ID].entry == nil {
			continue
		}
		touched = l.apply(touched, l.first[c.ID], visit)
		for _, p := range l.additional[c.ID] {
			touched = l.apply(touched, p, visit)
		}
	}
	slots := make([]*slot, len(touched))
	for i, e := range touched {
		e.touched = false
		slots[i] = e.slot
	}
	return slots
}

func (l *ledger) apply(touched []*entry, p place, visit func(p place, changed bool)) []*entry {
	status := p.entry.endpoints.status(p.index, l.health.Get)
	changed := p.entry.slot.setHealth(p.index, byte(status))
	visit(p, changed)
	if changed && !p.entry.touched {
		p.entry.touched = true
		touched = append(touched, p.entry)
	}
	return touched
}

func grow[T any](s []T, id health.EndpointID) []T {
	if int(id) < len(s) {
		return s
	}
	return slices.Grow(s, int(id)+1-len(s))[:int(id)+1]
}
