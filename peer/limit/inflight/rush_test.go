package inflight

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/peer/limit"
)

// rushing has a client come that sends a message of 5,000 bytes before it knows the settings. The
// handler has done with it.
func rushing(t *testing.T, b *Budget, caller string) (*conn, *quiet) {
	q := &quiet{}
	c := newConn(q, b, caller)
	c.begin(frame{kind: typeHeaders, stream: 1})
	if err := c.arrive(append(headOf(5000), bytes.Repeat([]byte{1}, 5000)...)); err != nil {
		t.Fatal(err)
	}
	handled(t, c, c.stream(1))
	return c, q
}

// TestARushEnds: a client that never acknowledges the settings does not keep others waiting for
// what they send before they know these.
func TestARushEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1 << 20)
		b.Rush = limit.NewQueue(defaultWindow)
		late := 0
		b.Late = func(caller string, _ int) {
			if late++; caller != "hostile" {
				t.Errorf("%s is late", caller)
			}
		}
		hostile, q := rushing(t, b, "hostile")
		b.Rush.Ask("honest", defaultWindow, func(turn *limit.Turn) { turn.Release() })
		synctest.Wait()
		time.Sleep(2 * b.arrival(defaultWindow))
		synctest.Wait()
		if !q.closed || late != 1 {
			t.Errorf("closed: %v, late: %d; want the connection closed once", q.closed, late)
		}
		_ = hostile.Close() // as grpc does
		if taken := b.Rush.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken at the end", taken)
		}
	})
}

// TestALateAcknowledgementEndsARush also where no message follows.
func TestALateAcknowledgementEndsARush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1 << 20)
		b.Late = func(caller string, _ int) { t.Errorf("%s is late", caller) }
		c, q := rushing(t, b, "honest")
		c.begin(frame{kind: typeSettings, flags: flagAck})
		if taken := b.Rush.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken although nothing is here", taken)
		}
		time.Sleep(2 * b.arrival(defaultWindow))
		synctest.Wait()
		if q.closed {
			t.Error("the connection is closed")
		}
		_ = c.Close()
	})
}
