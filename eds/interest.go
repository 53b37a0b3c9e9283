package eds

// interest is what a subscription asks for: names, or everything. It alone sets
// watch.named and watch.closed. It is guarded by the subscription's lock.
type interest struct {
	wildcard bool
	watches  map[string]*watch // by key
	named    int               // watches by a name of the client's own
	located  int               // those of them by a locator
	bytes    int               // the length of these names
}

// add takes in a watch, or gives the one that has its key.
func (i *interest) add(w *watch) (known *watch) {
	key := w.key()
	if known := i.watches[key]; known != nil {
		return known
	}
	i.watches[key] = w
	return nil
}

func (i *interest) remove(w *watch) {
	w.closed = true
	delete(i.watches, w.key())
	i.setNamed(w, false)
}

// setNamed notes whether the client asks for a watch by its name, or by the wildcard
// only.
func (i *interest) setNamed(w *watch, named bool) {
	if w.named == named {
		return
	}
	w.named = named
	change := 1
	if !named {
		change = -1
	}
	i.named += change
	i.bytes += change * len(w.key())
	if w.located {
		i.located += change
	}
}

// all gives the watches in no order.
func (i *interest) all() []*watch {
	all := make([]*watch, 0, len(i.watches))
	for _, w := range i.watches {
		all = append(all, w)
	}
	return all
}

// has tells whether the resource of a name is asked for.
func (i *interest) has(name string) bool { return i.wildcard || i.watches[name] != nil }

// check refuses one more name where there are too many.
func (i *interest) check(l limits, key string) error {
	return l.check(i.named+1, i.bytes+len(key))
}

// beside gives the keys subscribed by name that are not among those wanted.
func (i *interest) beside(wanted map[string]struct{}) (beside []string) {
	if i.named == len(wanted) {
		return nil
	}
	for key, w := range i.watches {
		if _, ok := wanted[key]; !ok && w.named {
			beside = append(beside, key)
		}
	}
	return beside
}

// locatedByName gives what is watched by a locator, except names with several
// variants: a client has no way to say which of them it has.
func (i *interest) locatedByName() map[string]*watch {
	if i.located == 0 {
		return nil
	}
	found := make(map[string]*watch)
	for _, w := range i.watches {
		if !w.located {
			continue
		}
		if _, several := found[w.slot.name]; several {
			found[w.slot.name] = nil
		} else {
			found[w.slot.name] = w
		}
	}
	return found
}
