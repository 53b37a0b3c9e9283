package batch

import (
	"math"

	"hdsd/health"
	"hdsd/log"
)

func encodeEvents(e *encoder, l *log.Entry) {
	if len(l.Events) == 0 {
		return
	}
	e.list(len(l.Events), eventMemory)
	for i := range l.Events {
		v := &l.Events[i]
		e.time(v.Time)
		e.uint(uint64(uint32(v.Kind)))
		e.endpoint(&health.Endpoint{Cluster: v.Cluster, Locality: v.Locality, Address: v.Address})
		e.text(v.Checker)
		e.text(v.Author)
		e.text(v.Identity)
		e.text(v.Text)
		e.bool(v.Whole)
	}
}

// decodeEvents decodes events. A later release may write kinds that this one does not know.
func decodeEvents(d *decoder, l *log.Entry) {
	l.Events = make([]log.Event, d.list(12, eventMemory))
	for i := range l.Events {
		v := &l.Events[i]
		v.Time = d.time()
		kind := d.Uvarint()
		if kind > math.MaxUint32 {
			d.Fail()
		}
		v.Kind = log.EventKind(uint32(kind))
		k := d.endpoint()
		v.Cluster, v.Locality, v.Address = k.Cluster, k.Locality, k.Address
		v.Checker, v.Author, v.Identity, v.Text, v.Whole = d.text(), d.text(), d.text(), d.text(), d.bool()
	}
}

func encodeOrder(e *encoder, l *log.Entry) {
	if l.Order != (log.OrderID{}) {
		e.fixed(l.Order.Process)
		e.fixed(l.Order.Number)
	}
}

func decodeOrder(d *decoder, l *log.Entry) {
	if l.Order = (log.OrderID{Process: d.Uint64(), Number: d.Uint64()}); l.Order == (log.OrderID{}) {
		d.Fail()
	}
}

func encodeOperator(e *encoder, l *log.Entry) {
	if l.Operator != nil {
		e.memory += operatorMemory
		e.text(l.Operator.Identity)
		e.text(l.Operator.Address)
		e.time(l.Operator.Time)
	}
}

func decodeOperator(d *decoder, l *log.Entry) {
	if d.take(1, operatorMemory) {
		l.Operator = &log.Operator{Identity: d.text(), Address: d.text(), Time: d.time()}
	}
}
