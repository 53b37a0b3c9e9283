package replica

import (
	"fmt"
	"strings"
	"testing"

	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

// TestAllReplicasTellOneHistory covers events that the leader notes, and those that operators add on any replica. A
// replica that does not lead notes nothing.
func TestAllReplicasTellOneHistory(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	var want []string
	for _, p := range l.running() {
		first := l.newEvent(8, &health.Checker{ID: p.id})
		p.step(Noted{[]log.Event{first, l.newEvent(9, &health.Checker{ID: p.id})}})
		annotation := l.newEvent(1, &health.Checker{ID: p.id})
		id := p.order(&machine.Annotate{Event: annotation})
		l.pass(2 * reportInterval)
		if p == leader {
			want = append(want, first.Text)
		}
		if want = append(want, annotation.Text); !l.orders[id].done || l.orders[id].err != nil {
			t.Errorf("%s: the order ends with %v", p.id, l.orders[id].err)
		}
	}
	for _, text := range want {
		count := 0
		for _, line := range l.log.history {
			if strings.Contains(line, text+" ") {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%s is %d times in the history %q", text, count, l.log.history)
		}
	}
	if len(l.noted) != 4 {
		t.Errorf("not in the log are %v", l.noted)
	}
	l.checkHistory()
	l.checkOrders()
}

// checkHistory checks that all replicas have the whole history of the log.
func (l *lab) checkHistory() {
	l.Helper()
	for _, p := range l.running() {
		if p.told != len(l.log.history) {
			l.Errorf("%s has %d lines of a history of %d", p.id, p.told, len(l.log.history))
		}
	}
}

// checkOperator covers that an entry has the operator of its order, and the event of an Annotate.
func (g *simLog) checkOperator(e *log.Entry) {
	o := g.lab.orders[e.Order]
	switch {
	case o == nil && e.Operator != nil:
		g.Errorf("%v gave no order", *e.Operator)
	case o != nil && (e.Operator == nil || *e.Operator != o.operator):
		g.Errorf("order %v is by %v, want %v", e.Order, e.Operator, o.operator)
	case o != nil && o.event != nil && (len(e.Events) != 1 || e.Events[0] != *o.event):
		g.Errorf("order %v has the events %v, want %v", e.Order, e.Events, *o.event)
	}
}

// historyOf returns what an entry tells of the events and operators.
func historyOf(e *log.Entry) (lines []string) {
	for i := range e.Events {
		lines = append(lines, fmt.Sprint(e.Events[i]))
	}
	if e.Operator != nil {
		lines = append(lines, fmt.Sprint(e.Order, *e.Operator))
	}
	return lines
}

// note lets the leader add an event to the history.
func (p *process) note(kind log.EventKind, k *health.Checker) {
	p.notes = append(p.notes, p.newEvent(kind, k))
}

// newEvent returns an event with a text of its own.
func (l *lab) newEvent(kind log.EventKind, k *health.Checker) log.Event {
	l.serial++
	e := log.Event{Time: l.now, Kind: kind, Checker: k.ID, Locality: k.Locality, Text: fmt.Sprint("event ", l.serial)}
	l.noted[e.Text] = true
	return e
}
