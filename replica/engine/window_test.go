package engine

import "testing"

func TestTheLogKeepsTheLatestEntries(t *testing.T) {
	for _, test := range []struct {
		name           string
		entries, bytes int
		outdated       uint64
	}{
		{"few", 1000, 100, 0},
		{"just as many as are kept", keptEntries, 10, 100},
		{"many small ones", keptEntries + 500, 10, 600},
		{"large ones", 1000, 1 << 20, 100 + 1000 - 128},
		{"as many as half of the bytes", 64, 1 << 20, 100},
	} {
		var w window
		for i := range test.entries {
			w.add(uint64(101+i), test.bytes)
		}
		if got := w.outdated(); got != test.outdated {
			t.Errorf("%s: outdated up to %d, want %d", test.name, got, test.outdated)
		}
	}
}
