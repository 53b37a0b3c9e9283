package aggregate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSeats compares with plain lists, and accounts for every block.
func TestSeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s seats
		var list [4]endpoint
		var model [4][]uint32
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "endpoint")
			e := &list[i]
			if len(model[i]) > 0 && rapid.IntRange(0, 2).Draw(t, "drop") == 0 {
				k := rapid.IntRange(0, len(model[i])-1).Draw(t, "which")
				s.remove(e, s.find(e, model[i][k]))
				model[i] = slices.Delete(model[i], k, k+1)
			} else {
				c := rapid.Uint32().Filter(func(c uint32) bool { return !slices.Contains(model[i], c) }).Draw(t, "checker")
				s.add(e, seat{checker: c})
				model[i] = append(model[i], c)
			}
			room := 0
			for i := range list {
				e := &list[i]
				var got []uint32
				if e.count > 0 {
					room += 3 << sizeOf(e.count)
					for _, x := range s.block(e) {
						got = append(got, x.checker)
					}
				}
				slices.Sort(got)
				if want := slices.Sorted(slices.Values(model[i])); !slices.Equal(got, want) {
					t.Fatalf("endpoint %d has the seats of %v, want %v", i, got, want)
				}
			}
			for size, free := range s.free {
				room += len(free) * (3 << size)
			}
			if room != len(s.list) {
				t.Fatalf("%d seats in use and free, %d in all", room, len(s.list))
			}
		}
	})
}
