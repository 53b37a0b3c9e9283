package relay

import "slices"

// Limits of the deliveries in doubt: refused ones of a name, and names of refused removals.
const (
	maxRefused = 4
	maxRemoved = 1 << 10
)

// doubts are the deliveries that a client may have beside the latest, by name. An answer is about a whole
// response, and clients take the good resources of a response that they refuse. doubts owns a reference to
// each, and gives it back when the client certainly does not have the delivery.
type doubts struct {
	stock   *stock
	good    map[string]*delivery   // open names, whose latest delivery the client has not accepted: the accepted one before; nil: none
	refused map[string][]*delivery // of open names: the deliveries between the accepted one and the latest, the oldest first
	removed map[string][]*delivery // of names of refused removals: the deliveries before
}

// begin notes a delivery that goes out, and the one before; nil: none.
func (d *doubts) begin(name string, previous, latest *delivery) {
	if _, open := d.good[name]; open {
		if previous != nil && previous.item.sameResource(latest.item) {
			d.stock.releaseDeliveries(previous)
		} else {
			d.addRefused(name, previous)
		}
		return
	}
	if d.good == nil {
		d.good = map[string]*delivery{}
	}
	d.good[name] = previous
	for _, s := range d.removed[name] { // the client may have kept them
		d.addRefused(name, s)
	}
	delete(d.removed, name)
}

// inherit adds the deliveries of an earlier stream that the client may have of a name, the latest at the end,
// unless the client has accepted one on this stream.
func (d *doubts) inherit(name string, earlier []*delivery, latest *delivery) {
	if good, open := d.good[name]; !open || good != nil {
		d.stock.releaseDeliveries(earlier...)
		return
	}
	refused := d.refused[name]
	delete(d.refused, name)
	for _, s := range slices.Concat(earlier, refused) {
		switch {
		case latest.item.sameResource(s.item):
			d.stock.releaseDeliveries(s)
		case d.good[name] == nil:
			d.good[name] = s
		default:
			d.addRefused(name, s)
		}
	}
}

// open reports whether the client has not accepted the latest delivery of a name.
func (d *doubts) open(name string) bool {
	_, open := d.good[name]
	return open
}

// addRefused adds a delivery that the client may have of an open name.
func (d *doubts) addRefused(name string, s *delivery) {
	if s == nil || !d.open(name) {
		d.stock.releaseDeliveries(s)
		return
	}
	if d.refused == nil {
		d.refused = map[string][]*delivery{}
	}
	refused := append(d.refused[name], s)
	if len(refused) > maxRefused {
		d.stock.releaseDeliveries(refused[0])
		refused = slices.Delete(refused, 0, 1)
	}
	d.refused[name] = refused
}

// accept notes that the client has accepted an older delivery than the latest; nil: a removal. It takes over
// a reference.
func (d *doubts) accept(name string, s *delivery) {
	d.stock.releaseDeliveries(d.good[name])
	if d.good[name] = s; s == nil {
		return
	}
	refused := d.refused[name]
	index := slices.IndexFunc(refused, func(x *delivery) bool { return x.item.sameResource(s.item) })
	d.stock.releaseDeliveries(refused[:index+1]...)
	d.setRefused(name, refused[index+1:])
}

func (d *doubts) setRefused(name string, refused []*delivery) {
	if len(refused) > 0 {
		d.refused[name] = refused
	} else {
		delete(d.refused, name)
	}
}

// exclude notes that the client does not have an older delivery than the latest.
func (d *doubts) exclude(s *delivery) {
	refused := d.refused[s.name()]
	if index := slices.IndexFunc(refused, func(x *delivery) bool { return x.item.sameResource(s.item) }); index >= 0 {
		d.stock.releaseDeliveries(refused[index])
		d.setRefused(s.name(), slices.Delete(refused, index, index+1))
	}
}

// takePrevious takes out the delivery before the latest of a name; nil: there is none.
func (d *doubts) takePrevious(name string) (previous *delivery) {
	if refused := d.refused[name]; len(refused) > 0 {
		previous = refused[len(refused)-1]
		d.setRefused(name, refused[:len(refused)-1])
		return previous
	}
	if previous = d.good[name]; previous != nil {
		d.close(name)
	}
	return previous
}

// settle notes that the client has the latest delivery of a name.
func (d *doubts) settle(name string) {
	d.stock.releaseDeliveries(d.good[name])
	if len(d.refused) > 0 {
		d.stock.releaseDeliveries(d.refused[name]...)
		delete(d.refused, name)
	}
	d.close(name)
}

func (d *doubts) close(name string) {
	if delete(d.good, name); len(d.good) == 0 {
		d.good = nil // frees memory: at a start it had all names
	}
}

// healthDiffers reports whether a delivery in doubt of a name has other health than now.
func (d *doubts) healthDiffers(s *Server, name string) bool {
	differs := func(x *delivery) bool { return x.item.render(s).sent.change != x.change }
	good := d.good[name]
	return good != nil && differs(good) || slices.ContainsFunc(d.refused[name], differs)
}

// otherCheck reports whether the client may have a cluster with another check than the latest delivery. The
// latest goes out again, alone: the answer says which check decides.
func (d *doubts) otherCheck(held *delivery) bool {
	if held == nil {
		return false
	}
	good := d.good[held.name()]
	return good != nil && good.item.body.group != held.item.body.group
}

// take takes out all deliveries of a name, the oldest first.
func (d *doubts) take(name string) (list []*delivery) {
	list = d.removed[name]
	delete(d.removed, name)
	if good := d.good[name]; good != nil {
		list = append(list, good)
	}
	list = append(list, d.refused[name]...)
	delete(d.refused, name)
	d.close(name)
	return list
}

// addRemoved adds the deliveries of a name of a refused removal. gone says that none went out since.
func (d *doubts) addRemoved(name string, list []*delivery, gone bool) {
	switch {
	case !gone: // the refused ones went out since
		refused := d.refused[name]
		delete(d.refused, name)
		for _, s := range slices.Concat(list, refused) {
			d.addRefused(name, s)
		}
	case len(d.removed) >= maxRemoved:
		d.stock.releaseDeliveries(list...)
	default:
		if d.removed == nil {
			d.removed = map[string][]*delivery{}
		}
		d.removed[name] = append(d.removed[name], list...)
	}
}

// setPanel gives the deliveries of an assignment another panel.
func (d *doubts) setPanel(name string, p *panel) {
	if good := d.good[name]; good != nil {
		d.good[name] = d.stock.transfer(good, p)
	}
	d.stock.transferAll(d.refused[name], p)
	d.stock.transferAll(d.removed[name], p)
}

// releaseRemoved notes that the client has none of the removed deliveries.
func (d *doubts) releaseRemoved() {
	for _, list := range d.removed {
		d.stock.releaseDeliveries(list...)
	}
	d.removed = nil
}

// takeAll takes out all deliveries.
func (d *doubts) takeAll() (list []*delivery) {
	for _, s := range d.good {
		if s != nil {
			list = append(list, s)
		}
	}
	for _, byName := range []map[string][]*delivery{d.refused, d.removed} {
		for _, entries := range byName {
			list = append(list, entries...)
		}
	}
	d.good, d.refused, d.removed = nil, nil, nil
	return list
}
