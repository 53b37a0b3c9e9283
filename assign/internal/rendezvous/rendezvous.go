package rendezvous

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

const (
	left  = 0x9e3779b97f4a7c15
	right = 0xe7037ed1a0b428db
)

// Hash hashes external names, such as those of checkers, zones and abilities.
func Hash(names ...string) uint64 {
	var buffer []byte
	for _, name := range names {
		buffer = binary.AppendUvarint(buffer, uint64(len(name)))
		buffer = append(buffer, name...)
	}
	sum := sha256.Sum256(buffer)
	return binary.BigEndian.Uint64(sum[:8])
}

// Score returns a pseudo-random number for two hashes.
func Score(a, b uint64) uint64 { return Join(Left(a), Right(b)) }

// Left prepares the first hash of a Score, Right the second, and Join combines both.
// So a hash of many scores is prepared once.
func Left(a uint64) uint64 { return a ^ left }

// Right prepares the second hash of a Score.
func Right(b uint64) uint64 { return b ^ right }

// Join combines two prepared hashes into a score.
func Join(left, right uint64) uint64 {
	hi, lo := bits.Mul64(left, right)
	return hi ^ lo
}

// Compare compares two scores by their weights, which must be positive. The higher
// score ranks first.
func Compare(x, y uint64, weightX, weightY int64) int {
	if weightX != weightY {
		const precise = 1 << 24
		s, t := Exponential(x)*precise/uint64(weightX), Exponential(y)*precise/uint64(weightY)
		if s != t {
			x, y = t, s
		}
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// Exponential turns a uniform number into an approximately exponential one: -log2 of
// it, in 65536ths. To choose by weight, divide it by each weight and take the
// smallest.
func Exponential(h uint64) uint64 {
	zeros := bits.LeadingZeros64(h | 1)
	fraction := (h << zeros << 1) >> 48
	return uint64(zeros)<<16 + (0xffff - fraction) + 1
}
