package eds

import (
	"slices"

	"hdsd/health"
)

// ledger knows the health of every endpoint and which assignments have it.
type ledger struct {
	health      []health.Status // by endpoint id
	assignments map[string]*entry
	// first and more list the places of each endpoint id. Nearly every id has one
	// place, so the first is kept apart.
	first []place
	more  map[health.EndpointID][]place
	// zones has the health that zones see themselves.
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
	return ledger{assignments: make(map[string]*entry), more: make(map[health.EndpointID][]place)}
}

func (l *ledger) status(id health.EndpointID) health.Status {
	if int(id) >= len(l.health) {
		return health.Unknown
	}
	return l.health[id]
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
	l.more[id] = append(l.more[id], p)
}

func (l *ledger) drop(id health.EndpointID, e *entry) {
	rest := slices.DeleteFunc(l.more[id], func(p place) bool { return p.entry == e })
	if l.first[id].entry == e {
		l.first[id] = place{}
		if len(rest) > 0 {
			l.first[id], rest = rest[0], rest[1:]
		}
	}
	if len(rest) > 0 {
		l.more[id] = rest
	} else {
		delete(l.more, id)
	}
}

// set changes the health of endpoints and returns the slots that change with it. It
// calls each with every place of the endpoints, and whether its health has changed.
func (l *ledger) set(changes []Health, each func(p place, changed bool)) []*slot {
	var touched []*entry
	for _, c := range changes {
		if l.status(c.ID) == c.Status {
			continue
		}
		l.health = grow(l.health, c.ID)
		l.health[c.ID] = c.Status
		if int(c.ID) >= len(l.first) || l.first[c.ID].entry == nil {
			continue
		}
		touched = l.apply(touched, l.first[c.ID], each)
		for _, p := range l.more[c.ID] {
			touched = l.apply(touched, p, each)
		}
	}
	slots := make([]*slot, len(touched))
	for i, e := range touched {
		e.touched = false
		slots[i] = e.slot
	}
	return slots
}

func (l *ledger) apply(touched []*entry, p place, each func(p place, changed bool)) []*entry {
	status := p.entry.endpoints.status(p.index, l.status)
	changed := p.entry.slot.setHealth(p.index, byte(status))
	each(p, changed)
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
