package eds

// watch watches what a key means: a name, or a name and what chooses a variant.
func (u *subscription) watch(key string) *watch {
	return u.stream.server.published.watch(u, key)
}

// subscribe watches what a key means. It gives the watch, and whether it is
// new among those that the client asks for by name.
func (u *subscription) subscribe(key string) (w *watch, added bool, err error) {
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
	w = u.watch(key)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.interest.setNamed(w, true)
	return w, true, nil
}

// unsubscribe ends the client's interest in what a key means. Where everything is
// watched, the client is sent the resource, or its absence, once more.
func (u *subscription) unsubscribe(key string) {
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
	u.table.unwatch(w, func() bool { return !all || w.sent == 0 && !w.slot.present() })
}

// subscribesAll tells whether the client asks for everything.
func (u *subscription) subscribesAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interest.wildcard
}

// subscribeAll watches everything; again means that what the client has is to
// be sent once more.
func (u *subscription) subscribeAll(again bool) {
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
		u.remember(u.watch(key), version)
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

// unsubscribedUnderWay gives the versions of what is under way to the client though
// it has given the names up.
func (u *subscription) unsubscribedUnderWay() map[string]uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.delivery.unsubscribed()
}

// remember notes a version that the client will have when it reads what is under way:
// it may have to learn that the resource is gone.
func (u *subscription) remember(w *watch, version uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delivery.remember(w, version)
	u.queue.push(w)
}
