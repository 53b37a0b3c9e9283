package store

import (
	"testing"
	"time"
)

// TestGroupsGrow: while more waits than a group takes, groups become larger, but only as long
// as their transactions are short.
func TestGroupsGrow(t *testing.T) {
	q := newQueue(16 * groupSize)
	for _, step := range []struct {
		name    string
		written int
		took    time.Duration
		want    int
	}{
		{"a short one that has not all", groupSize - 1, 0, groupSize},
		{"a full one", groupSize, longGroup/2 - 1, 2 * groupSize},
		{"a full one that is not short", 2 * groupSize, longGroup, 2 * groupSize},
		{"another short one", 2 * groupSize, 0, 4 * groupSize},
		{"the largest", 4 * groupSize, 0, 4 * groupSize},
		{"a long one", 0, longGroup + 1, 2 * groupSize},
		{"a second", 0, longGroup + 1, groupSize},
		{"a third", 0, longGroup + 1, groupSize},
	} {
		if q.fit(step.written, step.took); q.largest != step.want {
			t.Fatalf("after %s: %d, want %d", step.name, q.largest, step.want)
		}
	}
	q.shrink(100)
	if q.largest != 50 {
		t.Errorf("after 100 that the disk did not take: %d", q.largest)
	}
	if q.fit(50, longGroup); q.largest != 100 {
		t.Errorf("after 50 that it took, slowly: %d", q.largest)
	}
	if q := newQueue(20); q.largest != 5 {
		t.Errorf("of 20 that may wait, a group takes %d", q.largest)
	}
}
