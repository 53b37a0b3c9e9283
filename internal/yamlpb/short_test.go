package yamlpb

import (
	"bytes"
	"runtime"
	"testing"
)

// TestShortElementsTakeLittle: a file may have millions of elements of a few bytes each.
func TestShortElementsTakeLittle(t *testing.T) {
	const count, most = 1000, 2 << 10
	p, ok := SplitAsEnvoy("a.yaml", "resources", append([]byte("resources:\n"), bytes.Repeat([]byte("- a\n"), count)...))
	if !ok {
		t.Fatal("the file cannot be split")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range p.Len() {
		if _, err := p.Parse(i); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > most {
		t.Errorf("an element of 4 bytes takes %d bytes", each)
	}
}

// TestManyShortElementsAreNotSplit: a parser for each would cost more than one for all. Of a file
// with too many, nothing is split first.
func TestManyShortElementsAreNotSplit(t *testing.T) {
	for _, count := range []int{2000, 30 << 20} {
		data := append([]byte("resources:\n"), bytes.Repeat([]byte("-\n"), count)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, ok := SplitAsEnvoy("a.yaml", "resources", data); ok {
			t.Errorf("%d elements of 2 bytes are split", count)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%d elements of 2 bytes took %d bytes", count, took)
		}
	}
}
