package poll

import "time"

// Due returns the keys that a client has accepted, once it has had them for so long,
// and again each time this passes while SetUnasked says that it has not asked for
// something that they need; else nil.
func (t *Tracker) Due(key Key, within time.Duration, now time.Time) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	element := t.polls[key]
	if element == nil {
		return nil
	}
	e := entryOf(element)
	checked := e.checked.After(e.accepted)
	if e.Accepted == nil || now.Sub(e.accepted) < within || checked && (e.Unasked == 0 || now.Sub(e.checked) < within) {
		return nil
	}
	e.checked = now
	return e.Accepted.Keys
}

// SetUnasked notes how much a client has yet to ask for, and gives the number of
// before.
func (t *Tracker) SetUnasked(key Key, count int) (before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if element := t.polls[key]; element != nil {
		e := entryOf(element)
		before, e.Unasked = e.Unasked, count
		t.unasked += count - before
	}
	return before
}

// Unasked is how much all clients have yet to ask for.
func (t *Tracker) Unasked(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	return t.unasked
}
