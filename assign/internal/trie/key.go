package trie

import "math/bits"

// bitsOfKey is how many bits a Key has.
const bitsOfKey = 128

// Key is a place in the trie.
type Key struct{ Hi, Lo uint64 }

// Less compares keys.
func (k Key) Less(l Key) bool { return k.Hi < l.Hi || k.Hi == l.Hi && k.Lo < l.Lo }

// Bit tells whether the bit at a depth is set.
func (k Key) Bit(depth int) bool {
	if depth < 64 {
		return k.Hi>>(63-depth)&1 == 1
	}
	return k.Lo>>(127-depth)&1 == 1
}

// with sets the bit at a depth.
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

// Prefix keeps the first depth bits.
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

// Node is a part of the trie: all keys that begin with a prefix.
type Node struct {
	Prefix Key
	Depth  uint8 // bits of the prefix
}

// NodeOf is the part of the trie around a key.
func NodeOf(k Key, depth int) Node { return Node{k.Prefix(depth), uint8(depth)} }

// Contains tells whether a key is in the node.
func (n Node) Contains(k Key) bool { return k.Prefix(int(n.Depth)) == n.Prefix }

// Before tells whether all keys of the node come before a key.
func (n Node) Before(k Key) bool { return n.Prefix.Less(k) && !n.Contains(k) }

// Full tells whether the node has one key only.
func (n Node) Full() bool { return n.Depth >= bitsOfKey }

// children are the node's halves.
func (n Node) children() (left, right Node) {
	return Node{n.Prefix, n.Depth + 1}, Node{n.Prefix.with(int(n.Depth)), n.Depth + 1}
}

// Gap is the largest empty node around a key that lies between two leaves;
// either may be nil.
func Gap(k Key, left, right *Node) Node {
	depth := 0
	for _, leaf := range [2]*Node{left, right} {
		if leaf != nil {
			depth = max(depth, k.Common(leaf.Prefix)+1)
		}
	}
	return NodeOf(k, depth)
}
