package eds

import (
	"cmp"
	"slices"

	"hdsd/health"
)

// SetZoneHealth changes the health of endpoints as a zone sees it, which is what
// clients get that ask for that zone's, by its region and its name; without a region
// it is for those that ask by the name alone. What was never set, or is unset, is as
// SetHealth says; an endpoint that is gone has to be unset. Nothing else needs
// to be said of a zone, nor has it to be known before; it costs the endpoints set,
// and what is watched of them.
func (s *Server) SetZoneHealth(zone health.Locality, set []Health, unset []health.EndpointID) {
	s.owner.Lock()
	defer s.owner.Unlock()
	s.changed.Store(s.now())
	var touched []*slot
	for _, c := range set {
		if was, ok := s.ledger.zones[zone][c.ID]; ok && was == c.Status {
			continue
		}
		s.ledger.setZone(zone, c)
		touched = s.review(touched, zone, c.ID)
	}
	for _, id := range unset {
		if _, ok := s.ledger.zones[zone][id]; !ok {
			continue
		}
		s.ledger.unsetZone(zone, id)
		touched = s.review(touched, zone, id)
	}
	notifyOnce(touched)
}

// review brings the variants of a zone up to date with one endpoint.
func (s *Server) review(touched []*slot, zone health.Locality, id health.EndpointID) []*slot {
	for _, p := range s.ledger.places(id) {
		for _, v := range s.assignments.variantsOf(p.entry.slot) {
			if v.variant.zone == zone && s.ledger.chooseOne(v, p) {
				touched = append(touched, v)
			}
		}
	}
	return touched
}

// follow brings the variants of an assignment up to date with an endpoint whose
// health has been set for all zones that have none of their own.
func (s *Server) follow(touched []*slot, p place, changed bool) []*slot {
	for _, v := range s.assignments.variantsOf(p.entry.slot) {
		if s.ledger.chooseOne(v, p) || changed && !s.ledger.ownedBy(v, p) {
			touched = append(touched, v)
		}
	}
	return touched
}

// renew makes the variants of an assignment anew, whose endpoints have changed,
// and tells who watches them.
func (s *Server) renew(base *slot) {
	for _, v := range s.assignments.variantsOf(base) {
		v.forgetOwn()
		s.ledger.choose(v)
		v.notify()
	}
}

// chooseAll makes all variants of a zone that have come to be.
func (s *Server) chooseAll(zone health.Locality) {
	for id := range s.ledger.zones[zone] {
		s.review(nil, zone, id)
	}
}

// chooseFor makes the variants that a fetch asks for, which nobody keeps.
func (s *Server) chooseFor(all []*slot) {
	s.owner.Lock()
	defer s.owner.Unlock()
	for _, slot := range all {
		if slot != nil && slot.variant != nil {
			s.ledger.take(slot)
		}
	}
}

// seen gives slots as a zone sees them: with a variant, which nobody keeps, in the
// place of each of which it sees something by itself.
func (s *Server) seen(all []*slot, choice string) []*slot {
	if choice == "" {
		return all
	}
	s.owner.Lock()
	defer s.owner.Unlock()
	own := map[*slot]*slot{}
	zone, _ := zoneOf(choice)
	for id := range s.ledger.zones[zone] {
		for _, p := range s.ledger.places(id) {
			if base := p.entry.slot; own[base] == nil {
				own[base] = newVariant(base, choice)
				s.ledger.take(own[base])
			}
		}
	}
	if len(own) == 0 {
		return all
	}
	all = slices.Clone(all)
	for i, base := range all {
		all[i] = cmp.Or(own[base], base)
	}
	return all
}

func notifyOnce(slots []*slot) {
	told := make(map[*slot]struct{}, len(slots))
	for _, s := range slots {
		if _, ok := told[s]; !ok {
			told[s] = struct{}{}
			s.notify()
		}
	}
}

func (l *ledger) setZone(zone health.Locality, c Health) {
	of := l.zones[zone]
	if of == nil {
		if l.zones == nil {
			l.zones = make(map[health.Locality]map[health.EndpointID]health.Status)
		}
		of = make(map[health.EndpointID]health.Status)
		l.zones[zone] = of
	}
	of[c.ID] = c.Status
}

func (l *ledger) unsetZone(zone health.Locality, id health.EndpointID) {
	delete(l.zones[zone], id)
	if len(l.zones[zone]) == 0 {
		delete(l.zones, zone)
	}
}

// places gives where an endpoint is.
func (l *ledger) places(id health.EndpointID) []place {
	if int(id) >= len(l.first) || l.first[id].entry == nil {
		return nil
	}
	return append([]place{l.first[id]}, l.more[id]...)
}

// ownedBy tells whether a variant's zone has a health of its own of an endpoint.
func (l *ledger) ownedBy(v *slot, p place) bool {
	of := l.zones[v.variant.zone]
	for _, id := range p.entry.endpoints[p.index].ids {
		if _, ok := of[id]; ok {
			return true
		}
	}
	return false
}

// chooseOne makes one endpoint of a variant as its zone sees it, and tells whether
// that is a change.
func (l *ledger) chooseOne(v *slot, p place) bool {
	if !l.ownedBy(v, p) {
		return v.dropOwn(p.index)
	}
	of := l.zones[v.variant.zone]
	status := p.entry.endpoints[p.index].status(func(id health.EndpointID) health.Status {
		if status, ok := of[id]; ok {
			return status
		}
		return l.status(id)
	})
	return v.setOwn(p.index, byte(status))
}

// take makes a variant that nobody keeps as it is now: its base's endpoints may be
// others before it is read.
func (l *ledger) take(v *slot) {
	l.choose(v)
	frame := v.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.variant.taken = frame
}

// choose makes all of a new variant, or of one whose base has other endpoints.
func (l *ledger) choose(v *slot) {
	e := l.assignments[v.name]
	if e == nil || l.zones[v.variant.zone] == nil {
		return
	}
	for i := range e.endpoints {
		l.chooseOne(v, place{e, i})
	}
}
