package eds

import (
	"cmp"
	"strings"
)

// all gives the watches of this moment.
func (u *subscription) all() []*watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.allLocked()
}

func (u *subscription) allLocked() []*watch {
	all := make([]*watch, 0, len(u.watches))
	for _, w := range u.watches {
		all = append(all, w)
	}
	return all
}

func (w *watch) setNamed(named bool) {
	if w.named == named {
		return
	}
	w.named = named
	if w.located && named {
		w.sub.located++
	} else if w.located {
		w.sub.located--
	}
	if named {
		w.sub.named++
		w.sub.nameBytes += len(w.key())
	} else {
		w.sub.named--
		w.sub.nameBytes -= len(w.key())
	}
}

// watch watches what is meant by a key: the name, or that and what chooses a
// variant.
func (u *subscription) watch(key string) *watch {
	name, choice, located := strings.Cut(key, separator)
	if !located {
		choice = u.choice
	}
	if choice == "" {
		w, _ := u.table.watch(name, "", located, u)
		return w
	}
	s := u.stream.server
	s.owner.Lock() // so that the variant is what its zone sees from the start
	defer s.owner.Unlock()
	w, made := u.table.watch(name, choice, located, u)
	if made {
		s.ledger.choose(w.slot)
	}
	return w
}

// subscribe watches what a key stands for. It gives the watch, and whether it is
// new among those the client wants by name.
func (u *subscription) subscribe(key string) (w *watch, added bool, err error) {
	u.mu.Lock()
	w = u.watches[key]
	if w != nil && w.named {
		u.mu.Unlock()
		return w, false, nil
	}
	err = u.stream.server.limits().check(u.named+1, u.nameBytes+len(key))
	u.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	w = u.watch(key)
	u.mu.Lock()
	defer u.mu.Unlock()
	w.setNamed(true)
	return w, true, nil
}

// unsubscribe takes the client's interest in what a key stands for back. Where
// everything is watched, the client is told once more how the resource stands.
func (u *subscription) unsubscribe(key string) {
	u.mu.Lock()
	w := u.watches[key]
	if w == nil || !w.named {
		u.mu.Unlock()
		return
	}
	all := u.wildcard && !w.located
	if all {
		w.setNamed(false)
		w.force = u.delta
		u.enqueue(w)
	}
	u.mu.Unlock()
	u.table.unwatch(w, func() bool { return !all || w.sent == 0 && !w.slot.present() })
}

// subscribeAll watches everything; again means that what the client has is to
// be sent once more.
func (u *subscription) subscribeAll(again bool) {
	u.mu.Lock()
	u.wildcard = true
	u.mu.Unlock()
	u.watchAll(func(w *watch) {
		u.mu.Lock()
		defer u.mu.Unlock()
		w.force = w.force || again
		u.enqueue(w)
	})
	for key, version := range u.droppedInFlight() {
		u.remember(u.watch(key), version)
	}
}

// watchAll watches everything, and calls each with what there is now.
func (u *subscription) watchAll(each func(*watch)) {
	if u.choice == "" {
		u.table.watchAll(u, each)
		return
	}
	s := u.stream.server
	s.owner.Lock() // as in watch
	defer s.owner.Unlock()
	if u.table.watchAll(u, each) {
		zone, _ := zoneOf(u.choice)
		s.chooseAll(zone)
	}
}

// droppedInFlight gives the versions of what is under way to the client though
// it gave the names up meanwhile.
func (u *subscription) droppedInFlight() map[string]uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	var dropped map[string]uint64
	for _, s := range u.inFlight {
		if w := s.watch; w.closed && w.sent != 0 {
			if dropped == nil {
				dropped = make(map[string]uint64)
			}
			dropped[w.key()] = w.sent
		}
	}
	return dropped
}

// remember notes a version that the client has, or will have when it reads
// what is under way: it may have to be told of its end.
func (u *subscription) remember(w *watch, version uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w.sent = cmp.Or(w.sent, version)
	u.enqueue(w)
}

func (u *subscription) unsubscribeAll() {
	u.mu.Lock()
	was := u.wildcard
	u.wildcard = false
	u.mu.Unlock()
	if was {
		u.table.unwatchAll(u)
	}
}
