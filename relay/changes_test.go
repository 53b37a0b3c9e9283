package relay

import (
	"fmt"
	"testing"
)

// TestTheCoreWaitsForNoStream: what may have changed is noted while a stream is at work, and
// marked when it looks.
func TestTheCoreWaitsForNoStream(t *testing.T) {
	s := &Server{streams: map[*stream]struct{}{}, stock: newStock(1, 1, nil)}
	st := &stream{server: s, wake: make(chan struct{}, 1)}
	l := &ledger{key: nodeKey{kind: assignments}}
	for _, name := range []string{"web", "pay", "log"} {
		l.holdings.put(sentOf(name, 0))
	}
	st.ledgers[assignments] = l
	s.add(st)
	st.mu.Lock() // it is at work
	s.notify([]subject{{assignments, "pay"}, {clusters, "log"}, {assignments, "nowhere"}})
	if len(st.wake) != 1 {
		t.Error("the stream is not woken")
	}
	st.markDirty()
	if _, dirty := l.dirty["pay"]; len(l.dirty) != 1 || !dirty {
		t.Errorf("%v may have changed", l.dirty)
	}
	l.dirty = nil
	if st.markDirty(); len(l.dirty) != 0 {
		t.Errorf("%v may have changed again", l.dirty)
	}
	s.notify(nil)
	if st.markDirty(); len(l.dirty) != 3 {
		t.Errorf("%v may have changed after a change of all", l.dirty)
	}
}

// TestAStreamThatIsFarBehind looks at everything. Others miss nothing. Some
// changes are kept for each resource, however many come.
func TestAStreamThatIsFarBehind(t *testing.T) {
	for _, resources := range []int{0, 5000} {
		farBehind(t, resources, max(changesPerResource*resources, minChanges))
	}
}

func farBehind(t *testing.T, resources, limit int) {
	t.Helper()
	var c changes
	_, _, oldest := c.since(0)
	seen, number := map[string]bool{}, oldest
	for i := range 3 * limit {
		c.add([]subject{{clusters, fmt.Sprint(i)}}, resources)
		if len(c.subjects) > limit || cap(c.subjects) > 2*limit {
			t.Fatalf("%d changes are kept, in room for %d", len(c.subjects), cap(c.subjects))
		}
		subjects, anything, next := c.since(number)
		if anything {
			t.Fatalf("after %d, one that always looks is behind", i)
		}
		for _, s := range subjects {
			seen[s.name] = true
		}
		number = next
	}
	if len(seen) != 3*limit {
		t.Errorf("one that always looks has seen %d", len(seen))
	}
	if _, anything, _ := c.since(oldest); !anything {
		t.Error("one that is far behind does not look at everything")
	}
	c.add(make([]subject, limit+1), resources)
	if subjects, anything, _ := c.since(number); anything || len(subjects) != limit+1 {
		t.Errorf("of a large change, %d are left, anything: %v", len(subjects), anything)
	}
}
