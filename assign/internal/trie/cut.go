package trie

import (
	"sort"

	"hdsd/health"
)

// Item is an endpoint to be put into a leaf. The caller defines Seed, Kind and Zone.
type Item struct {
	Key
	ID   health.EndpointID
	Seed int32
	Kind int32
	Zone int32
}

// Cut divides a node's sorted items into as few leaves as fit, in order.
func Cut(at Node, items []Item, fits func([]Item) bool, leaf func(Node, []Item)) {
	for {
		if at.Full() || fits(items) {
			leaf(at, items)
			return
		}
		depth := int(at.Depth)
		middle := sort.Search(len(items), func(i int) bool { return items[i].Bit(depth) })
		left, right := at.children()
		switch middle {
		case 0:
			at = right
		case len(items):
			at = left
		default:
			Cut(left, items[:middle], fits, leaf)
			at, items = right, items[middle:]
		}
	}
}
