package assign

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// mix gives a pseudo-random number for two numbers that are hashes already.
func mix(a, b uint64) uint64 { return mixed(a^mixLeft, b^mixRight) }

const (
	mixLeft  = 0x9e3779b97f4a7c15
	mixRight = 0xe7037ed1a0b428db
)

// mixed is mix without its first step, which can be done once for many.
func mixed(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hashOf is for names from outside: checkers, zones, classes.
func hashOf(parts ...string) uint64 {
	var buffer []byte
	for _, part := range parts {
		buffer = binary.AppendUvarint(buffer, uint64(len(part)))
		buffer = append(buffer, part...)
	}
	sum := sha256.Sum256(buffer)
	return binary.BigEndian.Uint64(sum[:8])
}

// exponential turns a uniform number into one that is about exponentially
// distributed: -log2(h), in 65536ths, in whole numbers so that it is the same
// on every machine. Divided by weights, the smallest is a weighted choice.
func exponential(h uint64) uint64 {
	zeros := bits.LeadingZeros64(h | 1)
	fraction := (h << zeros << 1) >> 48
	return uint64(zeros)<<16 + (0xffff - fraction) + 1
}

// key is where an endpoint is in the trie.
type key struct{ hi, lo uint64 }

func (k key) less(l key) bool { return k.hi < l.hi || k.hi == l.hi && k.lo < l.lo }

func (k key) bit(depth int) bool {
	if depth < 64 {
		return k.hi>>(63-depth)&1 == 1
	}
	return k.lo>>(127-depth)&1 == 1
}

func (k key) with(depth int) key {
	if depth < 64 {
		k.hi |= 1 << (63 - depth)
	} else {
		k.lo |= 1 << (127 - depth)
	}
	return k
}

// common counts the leading bits that are the same.
func (k key) common(l key) int {
	if n := bits.LeadingZeros64(k.hi ^ l.hi); n < 64 {
		return n
	}
	return 64 + bits.LeadingZeros64(k.lo^l.lo)
}

// prefix keeps the first depth bits.
func (k key) prefix(depth int) key {
	switch {
	case depth >= 128:
		return k
	case depth > 64:
		k.lo &= ^uint64(0) << (128 - depth)
	case depth == 0:
		return key{}
	default:
		k.hi &= ^uint64(0) << (64 - depth)
		k.lo = 0
	}
	return k
}
