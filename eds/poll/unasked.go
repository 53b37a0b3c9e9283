package poll

import "time"

// Due returns the accepted keys of a client once it has had them for delay, and again after each
// further delay while SetUnasked says that it has not requested resources that they need; else
// nil.
func (t *Tracker) Due(key Key, delay time.Duration, now time.Time) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	element := t.polls[key]
	if element == nil {
		return nil
	}
	e := entryOf(element)
	checked := e.checked.After(e.accepted)
	if e.Accepted == nil || now.Sub(e.accepted) < delay || checked && (e.Unasked == 0 || now.Sub(e.checked) < delay) {
		return nil
	}
	e.checked = now
	return e.Accepted.Keys
}

// SetUnasked sets how many resources a client has yet to request, and returns the previous
// number.
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

// Unasked returns the total of all clients.
func (t *Tracker) Unasked(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	return t.unasked
}
