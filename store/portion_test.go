package store

import "testing"

// TestDivide divides portions of 10, 20, no and 5 transitions, the last of which begins 5 later.
func TestDivide(t *testing.T) {
	portions := []*portion{{start: 100, end: 110}, {start: 110, end: 130}, {start: 130, end: 130}, {start: 135, end: 140}}
	for _, test := range []struct {
		name        string
		front       uint64
		limit       int
		count, size int
	}{
		{"the first does not fit", 100, 9, 1, 10},
		{"the first fits", 100, 10, 1, 10},
		{"the second does not fit", 100, 29, 1, 10},
		{"both fit, and the empty one", 100, 30, 3, 30},
		{"also some that follow", 100, 33, 3, 33},
		{"the last does not fit", 100, 39, 3, 35},
		{"all fit", 100, 45, 4, 45},
		{"some precede the first", 90, 7, 0, 7},
		{"all that precede the first", 90, 19, 0, 10},
		{"and the first", 90, 20, 1, 20},
		{"the first is dropped", 110, 5, 1, 0},
		{"a part of the first is dropped", 105, 2, 1, 5},
		{"a part of the second is dropped", 115, 2, 2, 15},
		{"a part of the second is dropped, and fits", 115, 16, 3, 16},
		{"all are dropped", 150, 3, 4, 3},
		{"nothing waits behind them", 140, 0, 4, 0},
	} {
		if count, size := divide(portions, test.front, test.limit); count != test.count || size != test.size {
			t.Errorf("%s: %d portions, %d transitions, want %d, %d", test.name, count, size, test.count, test.size)
		}
	}
	if count, size := divide(nil, 100, 7); count != 0 || size != 7 {
		t.Errorf("without portions: %d, %d", count, size)
	}
}
