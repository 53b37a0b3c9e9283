package eds

import (
	"iter"

	"hdsd/internal/rest"
	"hdsd/peer/limit"
)

// interest is the set of requested names, or everything. It alone sets watch.named and
// watch.closed. It is guarded by the subscription's lock.
type interest struct {
	membership
	wildcard bool
	watches  map[string]*watch // by key, but those of the membership
	named    int               // watches requested by name
	located  int               // those of them with a locator
	bytes    int               // the length of all names
	lease    *limit.Lease      // names of missing resources; nil: unbounded
}

func (i *interest) remove(w *watch) {
	w.closed = true
	delete(i.watches, w.key())
	i.setNamed(w, false)
}

// setNamed records whether a watch is requested by name, or only by the wildcard.
func (i *interest) setNamed(w *watch, named bool) {
	if w.named == named {
		return
	}
	w.named = named
	if !named && w.cost > 0 {
		_ = i.lease.Add(-int64(w.cost)) // giving back is not refused
		w.cost = 0
	}
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

// longestName bounds the bytes of a name.
const longestName = 16 << 10

// checkName returns an error if a name has too many bytes.
func checkName(bytes int) error {
	if bytes > longestName {
		return rest.TooLarge("a name may have up to %d bytes, and one has %d: use shorter names", longestName, bytes)
	}
	return nil
}

// bytesPerName is the length up to which a name counts as one.
const bytesPerName = 256

// count counts the name of a missing resource before it is requested. Existing ones are bounded
// by the sources.
func (i *interest) count(w *watch) error {
	if i.lease == nil || w.named {
		return nil
	}
	cost := uint8(1 + len(w.key())/bytesPerName)
	if err := i.lease.Add(int64(cost)); err != nil {
		return err
	}
	w.cost = cost
	return nil
}

// size returns the number of requested resources.
func (i *interest) size() int { return max(len(i.watches), i.named) }

// find returns the watch of a requested key, or nil.
func (i *interest) find(u *subscription, key string) *watch {
	if w := i.watches[key]; w != nil {
		return w
	}
	if k, ok := i.position(key); ok {
		return i.own(u, k)
	}
	return nil
}

// list returns the watches in no order. Resources of a group may have none.
func (i *interest) list() []*watch {
	watches := make([]*watch, 0, len(i.watches))
	for _, w := range i.watches {
		watches = append(watches, w)
	}
	for _, w := range i.watchesIn(0, i.total()) {
		if !w.closed {
			watches = append(watches, w)
		}
	}
	return watches
}

// all visits every requested resource, in no order. The state of a resource of the group that has
// no watch is in a temporary watch, which the next one replaces. It comes with the frame in the
// outstanding page, if any.
func (i *interest) all() iter.Seq2[*watch, *frame] {
	return func(yield func(*watch, *frame) bool) {
		var temporary watch
		for _, w := range i.watches {
			if !yield(w, nil) {
				return
			}
		}
		for k := range i.total() {
			w, underWay := i.watch(k), (*frame)(nil)
			if w == nil {
				temporary, underWay = i.paged(k)
				w = &temporary
			}
			if !w.closed && !yield(w, underWay) {
				return
			}
		}
	}
}

// includes reports whether the resource of a name is requested.
func (i *interest) includes(name string) bool {
	_, inGroup := i.position(name)
	return i.wildcard || inGroup || i.watches[name] != nil
}

// names reports whether a key is requested by name.
func (i *interest) names(key string) bool {
	w := i.watches[key]
	k, inGroup := i.position(key)
	if inGroup {
		w = i.watch(k)
	}
	return w == nil && inGroup || w != nil && w.named
}

// check returns an error above the limit of names.
func (i *interest) check(l limits, key string) error {
	if err := checkName(len(key)); err != nil {
		return err
	}
	return l.check(i.named+1, i.bytes+len(key))
}

// unwanted returns the keys requested by name that are not wanted.
func (i *interest) unwanted(wanted map[string]struct{}) (unwanted []string) {
	if i.named == len(wanted) {
		return nil
	}
	for w := range i.all() {
		key := w.key()
		if _, ok := wanted[key]; !ok && w.named {
			unwanted = append(unwanted, key)
		}
	}
	return unwanted
}

// locatedByName returns the watches with a locator. It omits names with several variants,
// because a client cannot say which of them it has.
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
