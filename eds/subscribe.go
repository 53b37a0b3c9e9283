package eds

import "slices"

// watch watches a key: a name, or a name and the choice of a variant.
func (u *subscription) watch(key string) *watch {
	return u.stream.server.published.watch(u, key)
}

// expect makes room for names that the client asks for first. Many may not exist.
func (u *subscription) expect(names int) {
	if names = min(names, int(u.table.most.Load())); names == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.interest.watches) == 0 {
		u.interest.watches = make(map[string]*watch, names)
		u.queue.watches = slices.Grow(u.queue.watches, names)
	}
}

// subscribe watches a key that the client asks for. It returns the watch, and whether the
// client did not ask for the key before.
func (u *subscription) subscribe(key string) (w *watch, added bool, err error) {
	if m := memberOf(u); !m.separateSent(key) {
		m.dissolve()
	}
	u.mu.Lock()
	w = u.interest.watches[key]
	if w != nil && w.named {
		u.mu.Unlock()
		return w, false, nil
	}
	err = u.interest.check(u.stream.server.limiter.limits(), key)
	u.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	for {
		// Until it is named, the watch may end because its resource goes away.
		w = u.watch(key)
		if named, err := u.name(w); named || err != nil {
			return w, true, err
		}
	}
}

// name notes that the client asks for a watch by name, and tells whether that has not
// ended. It is refused if too many ask for what does not exist.
func (u *subscription) name(w *watch) (bool, error) {
	w.slot.mu.Lock()
	present := w.slot.present()
	w.slot.mu.Unlock()
	unknown := !present && !u.stream.server.published.incomplete.Load()
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.closed {
		return false, nil
	}
	if unknown {
		if err := u.interest.count(w); err != nil {
			return false, err
		}
	}
	u.interest.setNamed(w, true)
	return true, nil
}

// unsubscribe ends the client's interest in a key. A client that asks for everything is
// sent the resource, or its absence, once more.
func (u *subscription) unsubscribe(key string) {
	memberOf(u).dissolve()
	u.mu.Lock()
	w := u.interest.watches[key]
	if w == nil || !w.named {
		u.mu.Unlock()
		return
	}
	all := u.interest.wildcard && !w.located
	if all {
		u.interest.setNamed(w, false)
		w.force = u.delta
		u.queue.push(w)
	}
	u.mu.Unlock()
	u.table.unwatch(w, func() bool { return !all || w.sent == 0 && !w.present() })
}

// subscribesAll tells whether the client asks for everything.
func (u *subscription) subscribesAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interest.wildcard
}

// subscribeAll watches everything. With again, what the client has is sent once more.
func (u *subscription) subscribeAll(again bool) {
	memberOf(u).dissolve()
	u.mu.Lock()
	u.interest.wildcard = true
	u.mu.Unlock()
	u.stream.server.published.watchAll(u, func(w *watch) {
		u.mu.Lock()
		defer u.mu.Unlock()
		w.force = w.force || again
		u.queue.push(w)
	})
	for key, version := range u.unsubscribedUnderWay() {
		for known := false; !known; { // as in subscribe
			known = u.remember(u.watch(key), version)
		}
	}
}

func (u *subscription) unsubscribeAll() {
	u.mu.Lock()
	was := u.interest.wildcard
	u.interest.wildcard = false
	u.mu.Unlock()
	if was {
		u.table.unwatchAll(u)
	}
}

// unsubscribedUnderWay returns the versions of resources that are under way although the
// client has unsubscribed from them.
func (u *subscription) unsubscribedUnderWay() map[string]uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.delivery.unsubscribed()
}

// remember notes a version that the client will have when it reads what is under way: it
// may have to learn that the resource is gone. It tells whether the watch has not ended.
func (u *subscription) remember(w *watch, version uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.closed {
		return false
	}
	u.delivery.remember(w, version)
	u.queue.push(w)
	return true
}
