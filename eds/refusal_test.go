//go:build !race || soak

package eds

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestRefusedIndexesAreBounded whatever a client says: what cannot be read of a NACK refuses all.
func TestRefusedIndexesAreBounded(t *testing.T) {
	many := func(count int, each func(i int) int) string {
		var b strings.Builder
		b.WriteString("[")
		for i := range count {
			fmt.Fprintf(&b, "; resource index %d: x", each(i))
		}
		return b.String() + "]"
	}
	same := func(int) int { return 7 }
	for _, c := range []struct {
		name, text string
		most       int
		refuses    []int32
		takes      []int32
	}{
		{"one of two", "[resource index 1: x]", 1, []int32{1}, []int32{0, 2, -1}},
		{"none that can be read", "[resource index -1: x; resource index 99999999999: x]", 0, []int32{0, 1}, nil},
		{"one that can be read", "[resource index 99999999999: x; resource index 2147483647: x]", 1, []int32{math.MaxInt32}, []int32{0}},
		{"one many times", many(8000, same), 1, []int32{7}, []int32{0, 8}},
		{"many, backwards", many(8000, func(i int) int { return 2 * (8000 - i) }), 8000, []int32{2, 8000, 16000}, []int32{0, 1, 16001}},
		{"a long text", many(1_000_000, same), 0, []int32{0, 7}, nil},
		{"a long text without indexes", strings.Repeat("[resource index ", 1<<20), 0, []int32{0}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRefusal(c.text)
			if len(r.indexes) > c.most || cap(r.indexes) > maxIndexed/16 {
				t.Errorf("it keeps %d indexes with room for %d, want up to %d", len(r.indexes), cap(r.indexes), c.most)
			}
			for _, index := range c.refuses {
				if !r.includes(index) {
					t.Errorf("%d is taken", index)
				}
			}
			for _, index := range c.takes {
				if r.includes(index) {
					t.Errorf("%d is refused", index)
				}
			}
		})
	}
}
