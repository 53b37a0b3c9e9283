package eds

import (
	"cmp"
	"slices"

	"hdsd/health"
	"hdsd/publish"
)

// updateZone updates one endpoint in the variants of a zone, and adds those that changed.
func (p *publication) updateZone(changed []*slot, zone health.Locality, id health.EndpointID) []*slot {
	for _, place := range p.ledger.places(id) {
		for _, v := range p.assignments.variantsOf(place.entry.slot) {
			if v.variant.zone == zone && p.ledger.fillOne(v, place) {
				changed = append(changed, v)
			}
		}
	}
	return changed
}

// updateVariants updates one endpoint in all variants of an assignment, after its health was set
// for every zone without its own. It adds the changed variants.
func (p *publication) updateVariants(changed []*slot, place place, isChange bool) []*slot {
	for _, v := range p.assignments.variantsOf(place.entry.slot) {
		if p.ledger.fillOne(v, place) || isChange && !p.ledger.zoneHas(v, place) {
			changed = append(changed, v)
		}
	}
	return changed
}

// resetVariants fills the variants of an assignment whose endpoints have changed, and notifies
// their watches.
func (p *publication) resetVariants(base *slot) {
	for _, v := range p.assignments.variantsOf(base) {
		v.dropZoneHealth()
		p.ledger.fill(v)
		v.notify()
	}
}

// find returns the slot of each key, or all slots without a key. The choice is that of keys
// without one.
func (p *publication) find(t *table, keys []string, choice string) selection {
	if len(keys) == 0 {
		return selection{slots: p.inZone(t.allSlots(), choice)}
	}
	found, variants := t.find(keys, choice)
	if variants {
		p.snapshot(found.slots)
	}
	return found
}

// snapshot fills the variants among slots that were made for a fetch.
func (p *publication) snapshot(slots []*slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, slot := range slots {
		if slot != nil && slot.variant != nil {
			p.ledger.snapshot(slot)
		}
	}
}

// inZone returns slots as a zone sees them: if the zone has its own health, a temporary variant
// replaces the slot.
func (p *publication) inZone(slots []*slot, choice string) []*slot {
	if choice == "" {
		return slots
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	variants := map[*slot]*slot{}
	zone, _ := zoneOf(choice)
	for id := range p.ledger.zones[zone] {
		for _, place := range p.ledger.places(id) {
			if base := place.entry.slot; variants[base] == nil {
				variants[base] = newVariant(base, choice)
				p.ledger.snapshot(variants[base])
			}
		}
	}
	if len(variants) == 0 {
		return slots
	}
	slots = slices.Clone(slots)
	for i, base := range slots {
		slots[i] = cmp.Or(variants[base], base)
	}
	return slots
}

func notifyOnce(slots []*slot) {
	notified := make(map[*slot]struct{}, len(slots))
	for _, s := range slots {
		if _, ok := notified[s]; !ok {
			notified[s] = struct{}{}
			s.notify()
		}
	}
}

// setZone sets the health of an endpoint as a zone sees it, and reports whether it changes.
func (l *ledger) setZone(zone health.Locality, c publish.Health) bool {
	byID := l.zones[zone]
	if before, ok := byID[c.ID]; ok && before == c.Status {
		return false
	}
	if byID == nil {
		if l.zones == nil {
			l.zones = make(map[health.Locality]map[health.EndpointID]health.Status)
		}
		byID = make(map[health.EndpointID]health.Status)
		l.zones[zone] = byID
	}
	byID[c.ID] = c.Status
	return true
}

// unsetZone removes the health of an endpoint as a zone sees it, and reports whether there was
// one.
func (l *ledger) unsetZone(zone health.Locality, id health.EndpointID) bool {
	if _, ok := l.zones[zone][id]; !ok {
		return false
	}
	delete(l.zones[zone], id)
	if len(l.zones[zone]) == 0 {
		delete(l.zones, zone)
	}
	return true
}

// places returns every place of an endpoint.
func (l *ledger) places(id health.EndpointID) []place {
	if int(id) >= len(l.first) || l.first[id].entry == nil {
		return nil
	}
	return append([]place{l.first[id]}, l.additional[id]...)
}

// zoneHas reports whether a variant's zone has its own health for a place.
func (l *ledger) zoneHas(v *slot, p place) bool {
	byID := l.zones[v.variant.zone]
	for _, id := range p.entry.endpoints.ids(p.index) {
		if _, ok := byID[id]; ok {
			return true
		}
	}
	return false
}

// fillOne sets one endpoint of a variant to the health that its zone sees, and reports whether
// that is a change.
func (l *ledger) fillOne(v *slot, p place) bool {
	if !l.zoneHas(v, p) {
		return v.unsetZoneHealth(p.index)
	}
	byID := l.zones[v.variant.zone]
	status := p.entry.endpoints.status(p.index, func(id health.EndpointID) health.Status {
		if status, ok := byID[id]; ok {
			return status
		}
		return l.health.Get(id)
	})
	return v.setZoneHealth(p.index, byte(status))
}

// snapshot fills a variant made for a fetch, and fixes its frame: the base's endpoints
// may change before the frame is read.
func (l *ledger) snapshot(v *slot) {
	l.fill(v)
	frame := v.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.variant.fixed = frame
}

// fill sets every endpoint of a variant to the health that its zone sees.
func (l *ledger) fill(v *slot) {
	e := l.assignments[v.name]
	if e == nil || l.zones[v.variant.zone] == nil {
		return
	}
	for i := range e.endpoints.len() {
		l.fillOne(v, place{e, i})
	}
}
