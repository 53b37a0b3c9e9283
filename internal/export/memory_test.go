//go:build !race || soak

package export

import (
	"io"
	"runtime"
	"testing"
)

// TestMemoryDoesNotGrow with the number of rows.
func TestMemoryDoesNotGrow(t *testing.T) {
	inUse := func(groups int) uint64 {
		w := NewTransitions(io.Discard)
		for n := range groups * groupRows {
			if err := w.Write(change(n)); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.GC() // pools last until the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return m.HeapAlloc
	}
	few, many := inUse(2), inUse(12)
	if many > few+(1<<20) {
		t.Errorf("%d bytes after 2 row groups, %d after 12", few, many)
	}
}
