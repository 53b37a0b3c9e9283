package trie_test

import (
	"cmp"
	"slices"
	"testing"

	"hdsd/assign/internal/trie"
	"hdsd/health"

	"pgregory.net/rapid"
)

// items draws some whose keys have few different bits, so that many share a prefix
// or are equal.
func items(t *rapid.T) []trie.Item {
	part := rapid.SampledFrom([]uint64{0, 1, 2, 3, 1 << 63, 1<<63 | 1, 1 << 40, 1<<64 - 1})
	list := make([]trie.Item, rapid.IntRange(0, 300).Draw(t, "items"))
	for i := range list {
		list[i] = trie.Item{Key: trie.Key{Hi: part.Draw(t, "hi"), Lo: part.Draw(t, "lo")}, ID: health.EndpointID(i)}
	}
	return list
}

func byKey(a, b trie.Item) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.ID, b.ID))
}

func TestSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := items(t)
		want := slices.SortedFunc(slices.Values(list), byKey)
		inPlace := slices.Clone(list)
		trie.SortInPlace(inPlace, make([]trie.Item, len(list)))
		if !slices.Equal(inPlace, want) {
			t.Errorf("in place: got %v, want %v", inPlace, want)
		}
		if got := trie.Sort(list); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestCut cuts items into leaves of four at most: in order, complete, none twice, and
// no two neighbours that would fit together. A key between leaves is in the gap.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := trie.Sort(items(t))
		var leaves []trie.Node
		var seen []trie.Item
		fits := func(list []trie.Item) bool { return len(list) <= 4 }
		trie.Cut(trie.Node{}, sorted, fits, func(at trie.Node, list []trie.Item) {
			if len(list) == 0 && len(sorted) > 0 || !fits(list) && !at.Full() {
				t.Errorf("a leaf of %d items: %+v", len(list), at)
			}
			for _, item := range list {
				if !at.Contains(item.Key) {
					t.Errorf("%+v is not in %+v", item, at)
				}
			}
			leaves, seen = append(leaves, at), append(seen, list...)
		})
		if !slices.Equal(seen, sorted) {
			t.Errorf("the leaves have %v, not %v", seen, sorted)
		}
		for i := 1; i < len(leaves); i++ {
			k := trie.Key{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
			if left, right := &leaves[i-1], &leaves[i]; left.Before(k) && !right.Contains(k) && k.Less(right.Prefix) {
				gap := trie.Gap(k, left, right)
				if !gap.Contains(k) || gap.Contains(left.Prefix) || gap.Contains(right.Prefix) {
					t.Errorf("the gap around %+v between %+v and %+v is %+v", k, left, right, gap)
				}
			}
		}
	})
}
