package hds

import (
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/mem"
)

// sums has the hashes of a message's blocks, and of the previous message's if both have the same
// size.
type sums struct {
	start       int // offset of the first block; before it is a flat list, which is not read
	now, before []uint64
}

// blockBytes is the size of a block. With a hash of 8 bytes, a report takes a thousandth of its
// size.
const blockBytes = 8 << 10

// seed is that of all hashes of reports. Senders of reports do not know it, and could only make
// hdsd overlook a change in their own.
var seed = rand.Uint64()

// sumOf hashes bytes as fast as they could be compared.
func sumOf(b []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.Write(b) // it cannot fail
	return d.Sum64()
}

// next hashes the next message, and reports whether it equals the one before. It returns false
// if the two are not comparable, and then hashes all of it.
func (s *sums) next(data mem.BufferSlice, comparable bool) (same bool) {
	s.now, s.before = s.before[:0], s.now
	if !comparable {
		s.start, s.before = 0, s.before[:0]
	}
	s.hash(data)
	return comparable && len(s.now) > 0 && slices.Equal(s.now, s.before)
}

// forget drops the hashes of both messages.
func (s *sums) forget() { s.start, s.now, s.before = 0, s.now[:0], s.before[:0] }

// hash appends the hashes of the blocks.
func (s *sums) hash(data mem.BufferSlice) {
	var block xxhash.Digest
	skip, room := s.start, 0
	for _, buffer := range data {
		part := buffer.ReadOnlyData()
		part, skip = part[min(skip, len(part)):], skip-min(skip, len(part))
		for len(part) > 0 {
			if room == 0 {
				block.ResetWithSeed(seed)
				room = blockBytes
			}
			n := min(room, len(part))
			_, _ = block.Write(part[:n]) // it cannot fail
			if part, room = part[n:], room-n; room == 0 {
				s.now = append(s.now, block.Sum64())
			}
		}
	}
	if room > 0 {
		s.now = append(s.now, block.Sum64())
	}
}

// startAt makes the blocks of the present message, and of the next ones, begin at an offset.
func (s *sums) startAt(offset int, message []byte) {
	if s.start == offset {
		return
	}
	s.start, s.now, s.before = offset, s.now[:0], s.before[:0]
	s.hash(mem.BufferSlice{mem.SliceBuffer(message)})
}

// unchanged reports whether the bytes in [from, to) are known to equal those of the message
// before.
func (s *sums) unchanged(from, to int) bool {
	if from < s.start || from >= to {
		return false
	}
	first, last := (from-s.start)/blockBytes, (to-1-s.start)/blockBytes
	return last < len(s.before) && slices.Equal(s.now[first:last+1], s.before[first:last+1])
}
