package trie

import "math/bits"

// bitsOfKey is the length of a Key.
const bitsOfKey = 128

// Key is a place in the trie.
type Key struct{ Hi, Lo uint64 }

// Less compares keys.
func (k Key) Less(l Key) bool { return k.Hi < l.Hi || k.Hi == l.Hi && k.Lo < l.Lo }

// Bit reports whether the bit at a depth is set.
func (k Key) Bit(depth int) bool {
	if depth < 64 {
		return k.Hi>>(63-depth)&1 == 1
	}
	return k.Lo>>(127-depth)&1 == 1
}

// with returns the key with the bit at a depth set.
func (k Key) with(depth int) Key {
	if depth < 64 {
		k.Hi |= 1 << (63 - depth)
	} else {
		k.Lo |= 1 << (127 - depth)
	}
	return k
}

// Common counts the leading bits that two keys share.
func (k Key) Common(l Key) int {
	if n := bits.LeadingZeros64(k.Hi ^ l.Hi); n < 64 {
		return n
	}
	return 64 + bits.LeadingZeros64(k.Lo^l.Lo)
}

// Prefix returns the key with only its first depth bits.
func (k Key) Prefix(depth int) Key {
	switch {
	case depth >= bitsOfKey:
		return k
	case depth > 64:
		k.Lo &= ^uint64(0) << (128 - depth)
	case depth == 0:
		return Key{}
	default:
		k.Hi &= ^uint64(0) << (64 - depth)
		k.Lo = 0
	}
	return k
}

// Node is a part of the trie: all keys with a common prefix.
type Node struct {
	Prefix Key
	Depth  uint8 // length of the prefix
}

// NodeOf returns the node at a depth that contains a key.
func NodeOf(k Key, depth int) Node { return Node{k.Prefix(depth), uint8(depth)} }

// Contains reports whether a key is in the node.
func (n Node) Contains(k Key) bool { return k.Prefix(int(n.Depth)) == n.Prefix }

// Before reports whether all keys of the node come before a key.
func (n Node) Before(k Key) bool { return n.Prefix.Less(k) && !n.Contains(k) }

// Full reports whether the node has only one key.
func (n Node) Full() bool { return n.Depth >= bitsOfKey }

// children returns the node's halves.
func (n Node) children() (left, right Node) {
	return Node{n.Prefix, n.Depth + 1}, Node{n.Prefix.with(int(n.Depth)), n.Depth + 1}
}

// Gap returns the largest empty node that contains a key and lies between two leaves.
// Either leaf may be nil.
func Gap(k Key, left, right *Node) Node {
	depth := 0
	for _, leaf := range [2]*Node{left, right} {
		if leaf != nil {
			depth = max(depth, k.Common(leaf.Prefix)+1)
		}
	}
	return NodeOf(k, depth)
}
