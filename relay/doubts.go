package relay

import "slices"

// Bounds of what a client may have: versions of a name that it refused, and names that a refused
// response removed.
const (
	maxRefused = 4
	maxRemoved = 1 << 10
)

// doubts are what a client may have beside what it was sent last, by name. An answer is about a
// whole response, and clients take the good resources of one that they refuse. It owns a
// reference to each, and gives it back when it is certain that the client does not have it.
type doubts struct {
	stock   *stock
	good    map[string]*sent   // what it accepted before, of each name of which it has not accepted the latest; nil: nothing
	refused map[string][]*sent // of names in good: what it was sent since, the latest excepted, oldest first
	removed map[string][]*sent // of names that a refused response removed: what it had
}

// open notes that the client has not accepted what it is sent under a name, and what it was
// sent before; nil: nothing.
func (d *doubts) open(name string, before, now *sent) {
	if _, open := d.good[name]; open {
		if before != nil && before.item.like(now.item) {
			d.stock.unhold(before)
		} else {
			d.add(name, before)
		}
		return
	}
	if d.good == nil {
		d.good = map[string]*sent{}
	}
	d.good[name] = before
	for _, s := range d.removed[name] { // it may have kept that
		d.add(name, s)
	}
	delete(d.removed, name)
}

// inherit notes what the client may have of a name from an earlier stream, the latest at the end, unless
// it has accepted something on this one.
func (d *doubts) inherit(name string, all []*sent, now *sent) {
	if good, open := d.good[name]; !open || good != nil {
		d.stock.unhold(all...)
		return
	}
	since := d.refused[name]
	delete(d.refused, name)
	for _, s := range slices.Concat(all, since) {
		switch {
		case now.item.like(s.item):
			d.stock.unhold(s)
		case d.good[name] == nil:
			d.good[name] = s
		default:
			d.add(name, s)
		}
	}
}

// has reports whether the client has not accepted the latest of a name.
func (d *doubts) has(name string) bool {
	_, open := d.good[name]
	return open
}

// add notes what the client may have of a name of which it has not accepted the latest.
func (d *doubts) add(name string, s *sent) {
	if s == nil || !d.has(name) {
		d.stock.unhold(s)
		return
	}
	if d.refused == nil {
		d.refused = map[string][]*sent{}
	}
	all := append(d.refused[name], s)
	if len(all) > maxRefused {
		d.stock.unhold(all[0])
		all = slices.Delete(all, 0, 1)
	}
	d.refused[name] = all
}

// accept notes that the client has accepted something older than the latest of a name; nil: that there
// is nothing. It takes over a reference.
func (d *doubts) accept(name string, s *sent) {
	d.stock.unhold(d.good[name])
	if d.good[name] = s; s == nil {
		return
	}
	all := d.refused[name]
	index := slices.IndexFunc(all, func(other *sent) bool { return other.item.like(s.item) })
	d.stock.unhold(all[:index+1]...)
	d.setRefused(name, all[index+1:])
}

func (d *doubts) setRefused(name string, all []*sent) {
	if len(all) > 0 {
		d.refused[name] = all
	} else {
		delete(d.refused, name)
	}
}

// exclude notes that the client certainly does not have something older than the latest of a name.
func (d *doubts) exclude(s *sent) {
	all := d.refused[s.name()]
	if index := slices.IndexFunc(all, func(other *sent) bool { return other.item.like(s.item) }); index >= 0 {
		d.stock.unhold(all[index])
		d.setRefused(s.name(), slices.Delete(all, index, index+1))
	}
}

// back takes out what the client has of a name if it certainly does not have the latest; nil:
// nothing else is known.
func (d *doubts) back(name string) (previous *sent) {
	if all := d.refused[name]; len(all) > 0 {
		previous = all[len(all)-1]
		d.setRefused(name, all[:len(all)-1])
		return previous
	}
	if previous = d.good[name]; previous != nil {
		d.close(name)
	}
	return previous
}

// settle notes that the client has the latest of a name.
func (d *doubts) settle(name string) {
	d.stock.unhold(d.good[name])
	if len(d.refused) > 0 {
		d.stock.unhold(d.refused[name]...)
		delete(d.refused, name)
	}
	d.close(name)
}

func (d *doubts) close(name string) {
	if delete(d.good, name); len(d.good) == 0 {
		d.good = nil // its memory: at a start it had all names
	}
}

// differ reports whether something that the client may have of a name has another health now than
// when it was sent.
func (d *doubts) differ(s *Server, name string) bool {
	differs := func(x *sent) bool { return x.item.render(s).sent.change != x.change }
	good := d.good[name]
	return good != nil && differs(good) || slices.ContainsFunc(d.refused[name], differs)
}

// mayBeOther reports whether the client may have another version of a cluster than it was sent last,
// with another check. It is sent that again, alone: its answer says which check decides its health.
func (d *doubts) mayBeOther(held *sent) bool {
	if held == nil {
		return false
	}
	good := d.good[held.name()]
	return good != nil && good.item.body.group != held.item.body.group
}

// take takes out all that the client may have of a name, oldest first.
func (d *doubts) take(name string) (all []*sent) {
	all = d.removed[name]
	delete(d.removed, name)
	if good := d.good[name]; good != nil {
		all = append(all, good)
	}
	all = append(all, d.refused[name]...)
	delete(d.refused, name)
	d.close(name)
	return all
}

// keep notes what the client may have of a name that a refused response removed. A name that is
// gone was not sent again since.
func (d *doubts) keep(name string, all []*sent, gone bool) {
	switch {
	case !gone: // what was sent since is newer
		since := d.refused[name]
		delete(d.refused, name)
		for _, s := range slices.Concat(all, since) {
			d.add(name, s)
		}
	case len(d.removed) >= maxRemoved:
		d.stock.unhold(all...)
	default:
		if d.removed == nil {
			d.removed = map[string][]*sent{}
		}
		d.removed[name] = append(d.removed[name], all...)
	}
}

// resettle has what the client may have of an assignment for another panel.
func (d *doubts) resettle(name string, p *panel) {
	if good := d.good[name]; good != nil {
		d.good[name] = d.stock.transfer(good, p)
	}
	d.stock.transferAll(d.refused[name], p)
	d.stock.transferAll(d.removed[name], p)
}

// gone notes that the client has nothing that was removed.
func (d *doubts) gone() {
	for _, all := range d.removed {
		d.stock.unhold(all...)
	}
	d.removed = nil
}

// all takes out everything.
func (d *doubts) all() (all []*sent) {
	for _, s := range d.good {
		if s != nil {
			all = append(all, s)
		}
	}
	for _, some := range []map[string][]*sent{d.refused, d.removed} {
		for _, more := range some {
			all = append(all, more...)
		}
	}
	d.good, d.refused, d.removed = nil, nil, nil
	return all
}
