package eds

import "slices"

// watch watches a key: a name, or a name and the choice of a variant.
func (u *subscription) watch(key string) *watch {
	return u.stream.server.published.watch(u, key)
}

// expect makes room for requested names. Many may not exist.
func (u *subscription) expect(names int) {
	if names = min(names, int(u.table.peak.Load())); names == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.interest.watches) == 0 && u.interest.group == nil {
		u.interest.watches = make(map[string]*watch, names)
		u.queue.watches = slices.Grow(u.queue.watches, names)
	}
}

// subscribe watches a requested key, and returns the watch.
func (u *subscription) subscribe(key string) (w *watch, err error) {
	u.mu.Lock()
	if i, ok := u.interest.position(key); ok && i >= u.interest.sent {
		u.interest.queueRest(u) // it is to be sent once, not in a page as well
	}
	w = u.interest.find(u, key)
	if w != nil && w.named {
		u.mu.Unlock()
		return w, nil
	}
	err = u.interest.check(u.stream.server.limiter.limits(), key)
	u.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for {
		// Until it is named, the watch may end because its resource is removed.
		w = u.watch(key)
		if named, err := u.name(w); named || err != nil {
			return w, err
		}
	}
}

// name records that a watch is requested by name, and reports whether it has not ended. It fails
// if too many missing resources are requested.
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

// unsubscribe ends the client's interest in a key. A wildcard client is sent the resource, or
// its absence, once more.
func (u *subscription) unsubscribe(key string) {
	u.mu.Lock()
	w := u.interest.find(u, key)
	if w == nil || !w.named {
		u.mu.Unlock()
		return
	}
	u.interest.queueRest(u)
	inWildcard := u.interest.wildcard && !w.located
	if inWildcard {
		u.interest.setNamed(w, false)
		w.force = u.delta
		u.queue.push(w)
	}
	u.mu.Unlock()
	u.table.unwatch(w, func() bool { return !inWildcard || w.sent == 0 && !w.present() })
}

// subscribesAll reports whether the client requests everything.
func (u *subscription) subscribesAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interest.wildcard
}

// subscribeAll watches everything. With resend, the client's resources are sent once more.
func (u *subscription) subscribeAll(resend bool) {
	u.mu.Lock()
	u.interest.queueRest(u)
	u.interest.wildcard = true
	u.mu.Unlock()
	u.stream.server.published.watchAll(u, func(w *watch) {
		u.mu.Lock()
		defer u.mu.Unlock()
		w.force = w.force || resend
		u.queue.push(w)
	})
	for key, version := range u.unsubscribedUnderWay() {
		for done := false; !done; { // as in subscribe
			done = u.remember(u.watch(key), version)
		}
	}
}

func (u *subscription) unsubscribeAll() {
	u.mu.Lock()
	hadWildcard := u.interest.wildcard
	u.interest.wildcard = false
	u.mu.Unlock()
	if hadWildcard {
		u.table.unwatchAll(u)
	}
}

// unsubscribedUnderWay returns the versions of outstanding resources from which the client has
// unsubscribed.
func (u *subscription) unsubscribedUnderWay() map[string]uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.delivery.unsubscribed()
}

// remember records a version that the client will have after the outstanding response: it may
// have to learn that the resource no longer exists. It reports whether the watch has not ended.
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
