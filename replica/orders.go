package replica

import (
	"errors"
	"slices"
	"time"

	"hdsd/log"
	"hdsd/machine"
)

const (
	// maxOrders bounds the orders of this replica without an end.
	maxOrders = 1024

	// orderPatience is how long an order waits for a leader.
	orderPatience = 5 * time.Second
)

// These errors end orders. None of these orders is carried out, neither now nor later.
var (
	ErrNoLeader      = errors.New("no replica leads: the order is not carried out; see attention, and try again")
	ErrLeaderChanged = errors.New("another replica leads since: the order is not carried out; try again")
	ErrManyOrders    = errors.New("too many orders wait for the leader: the order is not carried out; try again later")

	errNoOrder = errors.New("this is no order of an operator")
)

// orders holds the orders of this replica from their arrival to their end, in their order.
type orders struct {
	waiting []*waitingOrder
}

type waitingOrder struct {
	Order
	since  time.Time
	term   Term   // of the leader that has it; zero: none
	lapse  uint64 // the last entry that may have it, if another term has begun since; 0: none has
	isDone bool   // the log has it
}

// add adds an order. It returns false if there are too many.
func (o *orders) add(now time.Time, order Order) bool {
	if len(o.waiting) >= maxOrders {
		return false
	}
	o.waiting = append(o.waiting, &waitingOrder{Order: order, since: now})
	return true
}

// take returns the orders to send to the leader of a term: new ones, and those sent before on another link.
func (o *orders) take(term Term, again bool) (orders []Order) {
	for _, w := range o.waiting {
		if w.term == (Term{}) || again && w.term == term {
			w.term = term
			orders = append(orders, w.Order)
		}
	}
	return orders
}

// hasNew reports whether an order is to be sent.
func (o *orders) hasNew() bool {
	return slices.ContainsFunc(o.waiting, func(w *waitingOrder) bool { return w.term == Term{} })
}

// begin notes a new term. Entries of earlier terms end at head.
func (o *orders) begin(term Term, head uint64) {
	for _, w := range o.waiting {
		if w.term != (Term{}) && w.term != term && w.lapse == 0 {
			w.lapse = max(head, 1)
		}
	}
}

// read returns the order of this replica that an entry carries out; nil without one.
func (o *orders) read(e *log.Entry) machine.Event {
	if e.Order == (log.OrderID{}) {
		return nil
	}
	for _, w := range o.waiting {
		if w.ID == e.Order && !w.isDone {
			w.isDone = true
			return w.Event
		}
	}
	return nil
}

// end ends the orders that are carried out, and those that cannot be any more: of an earlier term, not in the
// log up to a position behind which there are no entries of that term, or without a leader for too long.
func (o *orders) end(now time.Time, position uint64, yield func(Effect)) {
	o.waiting = slices.DeleteFunc(o.waiting, func(w *waitingOrder) bool {
		done := OrderDone{ID: w.ID}
		switch {
		case w.isDone:
		case w.lapse != 0 && position >= w.lapse:
			done.Err = ErrLeaderChanged
		case w.term == Term{} && now.Sub(w.since) >= orderPatience:
			done.Err = ErrNoLeader
		default:
			return false
		}
		yield(done)
		return true
	})
}

// refuse ends an order that the leader of a term refuses.
func (o *orders) refuse(term Term, r Refusal, yield func(Effect)) {
	o.waiting = slices.DeleteFunc(o.waiting, func(w *waitingOrder) bool {
		if w.ID != r.ID || w.term != term {
			return false
		}
		yield(OrderDone{ID: w.ID, Err: r.Err})
		return true
	})
}
