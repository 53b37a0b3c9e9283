package relay

import "testing"

// TestTheCoreWaitsForNoStream: what may have changed is noted while a stream is at work, and
// marked when it looks.
func TestTheCoreWaitsForNoStream(t *testing.T) {
	st := &stream{wake: make(chan struct{}, 1)}
	l := &ledger{kind: assignments, held: map[string]*holding{"web": nil, "pay": {}, "log": {}}}
	st.ledgers[assignments] = l
	st.mu.Lock() // it is at work
	st.touch([]subject{{assignments, "pay"}, {clusters, "log"}, {assignments, "nowhere"}})
	if len(st.wake) != 1 {
		t.Error("the stream is not woken")
	}
	st.touched()
	if len(l.dirty) != 1 || !l.dirty["pay"] {
		t.Errorf("%v may have changed", l.dirty)
	}
	st.touch(nil)
	if st.touched(); len(l.dirty) != 3 {
		t.Errorf("%v may have changed after a change of all", l.dirty)
	}
	if all, some := st.touches.take(); all || some != nil {
		t.Error("it is not forgotten")
	}
}
