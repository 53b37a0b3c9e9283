package eds

import (
	"slices"
	"strings"
)

// selection is what a fetch asks for.
type selection struct {
	slots   []*slot // to be read only; nil where there is no place of that name
	located []bool  // which of them by a locator; nil: none
}

func (s *selection) byLocator(i int) bool { return s.located != nil && s.located[i] }

// latest is current, where there may be no slot.
func (s *slot) latest() *frame {
	if s == nil {
		return nil
	}
	return s.current()
}

// find gives what each of the keys stands for, without the health of variants: those
// are made for the caller.
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
		slot := t.slots[name]
		if slot != nil && chosen != "" {
			slot, variants = newVariant(slot, chosen), true
		}
		found.slots[i] = slot
	}
	return found, variants
}

// all gives all slots by name, to be read only.
func (t *table) all() []*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sorted == nil {
		t.sorted = make([]*slot, 0, len(t.slots))
		for _, s := range t.slots {
			t.sorted = append(t.sorted, s)
		}
		slices.SortFunc(t.sorted, func(a, b *slot) int { return strings.Compare(a.name, b.name) })
	}
	return t.sorted
}
