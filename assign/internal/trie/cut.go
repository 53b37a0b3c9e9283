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
func Cut(node Node, items []Item, fits func([]Item) bool, leaf func(Node, []Item)) {
	for {
		if node.Full() || fits(items) {
			leaf(node, items)
			return
		}
		depth := int(node.Depth)
		middle := sort.Search(len(items), func(i int) bool { return items[i].Bit(depth) })
		left, right := node.children()
		switch middle {
		case 0:
			node = right
		case len(items):
			node = left
		default:
			Cut(left, items[:middle], fits, leaf)
			node, items = right, items[middle:]
		}
	}
}
