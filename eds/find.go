package eds

import (
	"slices"
	"strings"

	"hdsd/peer/access"
)

// selection is the slots requested by a fetch.
type selection struct {
	slots   []*slot // read only; nil for a missing slot
	located []bool  // which of them are requested by a locator; nil: none
}

func (s *selection) byLocator(i int) bool { return s.located != nil && s.located[i] }

// restrict removes slots that a client may not see.
func (s selection) restrict(permitted access.Clusters) selection {
	if permitted.All() {
		return s
	}
	s.slots = slices.Clone(s.slots)
	for i, slot := range s.slots {
		if slot != nil && !permitted.Has(slot.baseName()) {
			s.slots[i] = nil
		}
	}
	return s
}

// latest is current for a slot that may be nil.
func (s *slot) latest() *frame {
	if s == nil {
		return nil
	}
	return s.current()
}

// find returns the slot of each key. Variants are made for the caller, and have no zone
// health yet.
func (t *table) find(keys []string, choice string) (found selection, variants bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found.slots = make([]*slot, len(keys))
	for i, key := range keys {
		name, chosen, located := strings.Cut(key, separator)
		if located && found.located == nil {
			found.located = make([]bool, len(keys))
		}
		if located {
			found.located[i] = true
		} else {
			chosen = choice
		}
		slot := t.slotOf(name)
		if !located && t.isAlias(name) {
			chosen = ""
		}
		if slot != nil && chosen != "" {
			slot, variants = newVariant(slot, chosen), true
		}
		found.slots[i] = slot
	}
	return found, variants
}

// allSlots returns all slots by name. The caller must not change the slice.
func (t *table) allSlots() []*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sorted == nil {
		t.sorted = make([]*slot, 0, len(t.slots))
		for _, s := range t.slots {
			if !s.hidden() {
				t.sorted = append(t.sorted, s)
			}
		}
		slices.SortFunc(t.sorted, func(a, b *slot) int { return strings.Compare(a.name, b.name) })
	}
	return t.sorted
}
